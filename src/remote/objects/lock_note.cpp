#include "remote/objects/lock_note.hpp"

#include <cassert>

#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kLockNote{"VLMLOCK\n", kMaxLockNoteBytes,
                                          "not the duration of locks",
                                          "too large for the duration of locks"};

}  // namespace

std::vector<std::byte> encode_lock_note(std::chrono::seconds duration,
                                        const format::FileSeal& seal) {
  assert(duration.count() > 0 && duration <= kMaxLock);
  std::vector<std::byte> body;
  format::ByteWriter(body).varint(static_cast<std::uint64_t>(duration.count()));
  return encode_whole_file(kLockNote, body, seal);
}

const char* decode_lock_note(std::span<const std::byte> bytes, const format::FileSeal& seal,
                             std::chrono::seconds& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kLockNote, bytes, seal, opened, body)) return problem;
  format::ByteReader in(body);
  const std::uint64_t seconds = in.varint();
  const auto most = static_cast<std::uint64_t>(kMaxLock.count());
  if (!in.done() || seconds == 0 || seconds > most) return "malformed";
  out = std::chrono::seconds(seconds);
  return nullptr;
}

}  // namespace vellum::remote
