#include "remote/objects/piece_list.hpp"

#include <cstring>

#include "format/whole_file.hpp"
#include "format/wire.hpp"
#include "remote/objects/piece.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kList{"VLMLIST\n", kMaxListBytes, "not a list of pieces",
                                      "too large for a list of pieces"};
constexpr std::size_t kMinPieceBytes = 38;  // of an encoded name

}  // namespace

std::vector<std::byte> encode_piece_list(const PieceList& list, const format::Uuid& store_id) {
  std::vector<std::byte> body;
  format::ByteWriter w(body);
  w.varint(list.size());
  for (const PieceName& piece : list) {
    w.u32(piece.name.generation);
    w.bytes(piece.name.hash);
    w.varint(piece.size_bytes);
    w.varint(piece.contents_bytes);
  }
  return encode_whole_file(kList, body, store_id);
}

const char* decode_piece_list(std::span<const std::byte> bytes, const format::Uuid& store_id,
                              PieceList& out) {
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kList, bytes, store_id, body)) return problem;
  out.clear();
  format::ByteReader in(body);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kMinPieceBytes) return "malformed";
  out.resize(static_cast<std::size_t>(count));
  for (PieceName& piece : out) {
    piece.name.generation = in.u32();
    const auto hash = in.bytes(piece.name.hash.size());
    if (!in.ok()) return "malformed";
    std::memcpy(piece.name.hash.data(), hash.data(), hash.size());
    piece.size_bytes = in.varint();
    piece.contents_bytes = in.varint();
    if (piece.size_bytes > kMaxPieceBytes || piece.contents_bytes > kMaxContentsBytes ||
        piece.contents_bytes >= piece.size_bytes) {
      return "malformed";
    }
  }
  return in.done() ? nullptr : "malformed";
}

}  // namespace vellum::remote
