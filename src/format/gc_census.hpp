// format/gc_census.hpp: the file gc.census, the saved live set of a garbage collection.
//
// It lists the records that versions need. It is a hint for the next gc;
// store/gc/reach/census_file.hpp gives the reason why gc can rely on it.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxGcCensusBytes = 256u << 20;  // the whole file

// Records [first, first + count) of GcCensus::records.
struct CensusRange {
  std::uint32_t first = 0, count = 1;
  bool operator==(const CensusRange&) const = default;
};

// The records of consecutive runs of a version, without the entries that newer runs of the same
// list hide.
struct CensusPart {
  std::vector<std::uint32_t> roots;  // of the runs, newest first; 1..kMaxRunsPerVersion
  std::vector<CensusRange> records;  // ascending, not adjacent; roots and map blocks included
  std::vector<std::uint64_t> packs;  // that the runs name; ascending
  bool operator==(const CensusPart&) const = default;
};

struct GcCensus {
  std::vector<RecordRef> records;  // ascending; parts refer to them by index
  // The size of each record at the offset that references give, header and padding included, in
  // units of kRecordAlignBytes. 0: unknown.
  std::vector<std::uint32_t> size_lines;
  std::vector<CensusPart> parts;
  bool operator==(const GcCensus&) const = default;
};

// Returns an empty vector when the file would exceed the limit. REQUIRES: size_lines has one
// element per record.
std::vector<std::byte> encode_gc_census(const GcCensus& census, const FileSeal& seal);
// nullptr, or a description of the error. A decoded census satisfies all constraints above.
const char* decode_gc_census(std::span<const std::byte> bytes, const FileSeal& seal, GcCensus& out);

}  // namespace vellum::format
