// remote/objects/piece.hpp: a piece: an object with records of packs, behind an index of them.
#pragma once

#include <cassert>
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
  // The place in the record's own header: `ref`, unless the record is from a translated pack.
  format::RecordRef place;
  std::vector<format::SlotRange> dropped;  // slots that gc has freed in this form
  bool operator==(const PieceRecord&) const = default;

  // Whether it is as a commit wrote it, with all of its slots.
  bool is_original() const noexcept { return place == ref && dropped.empty(); }
};

// The index at the start of a piece; the records follow it. REQUIRES: decode_piece_index() would
// accept it.
std::vector<std::byte> encode_piece_index(std::span<const PieceRecord> records,
                                          const format::FileSeal& seal);
// nullptr, or a description of the error. `bytes` is the index only, without the records.
const char* decode_piece_index(std::span<const std::byte> bytes, const format::FileSeal& seal,
                               std::vector<PieceRecord>& out);

// The places of records, by their headers, in one file of each pack. Records from the translated
// packs of two stores may overlap; such records must not share a piece.
class TakenPlaces {
 public:
  // False: the place overlaps one that is taken.
  bool take(const PieceRecord& record);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> ends_;  // by pack and place
};

// The bytes of all records together.
std::uint64_t records_bytes(std::span<const PieceRecord> records) noexcept;

// Calls visit(record, its bytes, their offset in `bytes`) for each record. The records are
// contiguous and begin at `at`. REQUIRES: `bytes` has all of them.
template <typename Visit>
void for_records(std::span<const PieceRecord> records, std::span<const std::byte> bytes,
                 std::size_t at, const Visit& visit) {
  for (const PieceRecord& record : records) {
    const auto size = static_cast<std::size_t>(record.size_bytes);
    assert(at <= bytes.size() && size <= bytes.size() - at);
    visit(record, bytes.subspan(at, size), at);
    at += size;
  }
}

// Checks the bytes of a record, with its seal. nullptr, or a description of the error.
const char* check_record(const PieceRecord& record, std::span<const std::byte> bytes,
                         const format::RecordSeal& seal);

}  // namespace vellum::remote
