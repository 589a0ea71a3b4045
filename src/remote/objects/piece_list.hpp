// remote/objects/piece_list.hpp: the pieces that one version needs.
#pragma once

#include <span>
#include <vector>

#include "format/types.hpp"
#include "remote/objects/object_key.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxListBytes = 64u << 20;

struct PieceName {
  ContentName name;
  std::uint64_t size_bytes = 0;
  std::uint64_t contents_bytes = 0;  // at its start; see remote/objects/piece.hpp
  auto operator<=>(const PieceName&) const = default;
};

using PieceList = std::vector<PieceName>;

std::vector<std::byte> encode_piece_list(const PieceList& list, const format::Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_piece_list(std::span<const std::byte> bytes, const format::Uuid& store_id,
                              PieceList& out);

}  // namespace vellum::remote
