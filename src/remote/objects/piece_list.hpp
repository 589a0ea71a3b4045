// remote/objects/piece_list.hpp: the pieces that one version needs.
#pragma once

#include <span>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"
#include "format/working_set.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/objects/piece.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxListBytes = 64u << 20;

struct PieceName {
  ContentName content;
  std::uint64_t size_bytes = 0;
  std::uint64_t index_bytes = 0;  // of the index at its start (remote/objects/piece.hpp)
  auto operator<=>(const PieceName&) const = default;
};

using PieceList = std::vector<PieceName>;

// The range of a pack, by the references of versions, that has a piece's records. It may have gaps.
struct PackSpan {
  std::uint64_t pack = 0, first_offset_bytes = 0, last_offset_bytes = 0;
  auto operator<=>(const PackSpan&) const = default;
};

// Data in a list with which a version opens without reading a piece.
struct OpeningData {
  std::vector<std::vector<PackSpan>> spans;  // one for each piece, ascending by pack
  // The roots of the version's runs, and perhaps other records: `root_bytes` are their bytes.
  std::vector<PieceRecord> roots;
  std::vector<std::byte> root_bytes;
  bool operator==(const OpeningData&) const = default;
};

// The pages that the version's last use touched, by the working set of the store that pushed it.
// Only a hint.
struct PagesInUse {
  std::vector<format::PageRange> ranges;  // in the order of first use; empty: none recorded
  std::vector<std::uint32_t> pieces;      // of the list, in that order: those with these pages
  bool operator==(const PagesInUse&) const = default;
};
inline constexpr std::size_t kMaxRangesInUse = 1u << 14;
inline constexpr std::uint64_t kMaxPagesInUse = 1u << 16;

// The spans of the records. REQUIRES: at least one record; they ascend by reference.
std::vector<PackSpan> spans_of(std::span<const PieceRecord> records);

// The content of a list.
struct VersionPieces {
  PieceList list;
  OpeningData opening;
  PagesInUse in_use;
  bool operator==(const VersionPieces&) const = default;
};

// REQUIRES: decode_piece_list() would accept it.
std::vector<std::byte> encode_piece_list(const VersionPieces& pieces, const format::FileSeal& seal);
// nullptr, or a description of the error. The records in `opening` are not checked.
const char* decode_piece_list(std::span<const std::byte> bytes, const format::FileSeal& seal,
                              VersionPieces& out);

// The parts of an encoded list: its pieces with their spans, and the rest.
inline constexpr std::size_t kMinPieceBytes = 38;  // of an encoded name
void write_pieces(format::ByteWriter& w, const VersionPieces& pieces);
void write_end(format::ByteWriter& w, const VersionPieces& pieces, const format::Uuid& store_id);
// False: malformed.
bool read_pieces(format::ByteReader& in, VersionPieces& out);
// REQUIRES: `out` has the list.
bool read_end(format::ByteReader& in, const format::Uuid& store_id, VersionPieces& out);

}  // namespace vellum::remote
