// remote/objects/piece.hpp: a piece of packs: records, behind a table that says which.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "format/records/record.hpp"
#include "format/records/translation.hpp"
#include "format/wire/types.hpp"

namespace vellum::remote {

inline constexpr std::uint32_t kMaxPieceIndexBytes = 64u << 20;
inline constexpr std::uint64_t kMaxPieceBytes = 192u << 20;  // a record of the largest size fits

// A record in a piece.
struct PieceRecord {
  format::RecordType type = format::RecordType::pages;
  format::RecordRef ref;         // as versions refer to it
  std::uint64_t size_bytes = 0;  // with header and padding
  // Where the record's own header says it is. As `ref`, unless it comes from a translated pack.
  format::RecordRef place;
  std::vector<format::SlotRange> dropped;  // slots that were given back there
  bool operator==(const PieceRecord&) const = default;

  // As it was written at first, with all of its slots.
  bool is_original() const noexcept { return place == ref && dropped.empty(); }
};

// The start of a piece. The records follow it. REQUIRES: decode_piece_index() would accept it.
std::vector<std::byte> encode_piece_index(std::span<const PieceRecord> records,
                                          const format::Uuid& store_id);
// nullptr, or a description of the error. `bytes` is the start alone.
const char* decode_piece_index(std::span<const std::byte> bytes, const format::Uuid& store_id,
                               std::vector<PieceRecord>& out);

// The places that records say they have in one file of each pack. Those that come from the translated
// packs of two stores may overlap, and then must not share a piece.
class TakenPlaces {
 public:
  // False: it is taken, all of it or a part.
  bool take(const PieceRecord& record);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> ends_;  // by pack and place
};

// The bytes of all records together.
std::uint64_t records_bytes(std::span<const PieceRecord> records) noexcept;

// Calls visit(record, its bytes, where they begin in `bytes`) for each record; they lie one behind the
// other from `at` on.
template <typename Visit>
void for_records(std::span<const PieceRecord> records, std::span<const std::byte> bytes,
                 std::size_t at, const Visit& visit) {
  for (const PieceRecord& record : records) {
    const auto size = static_cast<std::size_t>(record.size_bytes);
    visit(record, bytes.subspan(at, size), at);
    at += size;
  }
}

// Checks the bytes of a record. nullptr, or a description of the error.
const char* check_record(const PieceRecord& record, std::span<const std::byte> bytes,
                         std::uint64_t seed) noexcept;

}  // namespace vellum::remote
