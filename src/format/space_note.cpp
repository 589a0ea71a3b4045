#include "format/space_note.hpp"

#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kSpaceNoteFile{kSpaceNoteMagic, kMaxSpaceNoteBytes, "no space note",
                                       "larger than any space note"};

}  // namespace

std::vector<std::byte> encode_space_note(const SpaceNote& note, const FileSeal& seal) {
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.u64(note.left_bytes);
  b.u64(note.needed_bytes);
  return encode_whole_file(kSpaceNoteFile, body, seal);
}

const char* decode_space_note(std::span<const std::byte> bytes, const FileSeal& seal,
                              SpaceNote& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kSpaceNoteFile, bytes, seal, opened, body))
    return problem;
  ByteReader in(body);
  SpaceNote note;
  note.left_bytes = in.u64();
  note.needed_bytes = in.u64();
  if (!in.done()) return "malformed";
  out = note;
  return nullptr;
}

}  // namespace vellum::format
