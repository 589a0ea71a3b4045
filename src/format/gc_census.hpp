// format/gc_census.hpp: the file gc.census: the records that versions need, as one gc found
// them. It is a hint for the next gc (store/gc/reach/census_file.hpp says why gc can rely on it).
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxSavedLiveSetBytes = 256u << 20;  // the whole file

struct GcCensus {
  struct Range {
    std::uint32_t first = 0, count = 1;
    bool operator==(const Range&) const = default;
  };
  // The entries that a stretch of consecutive runs shows and nothing newer hides.
  struct Part {
    std::vector<std::uint32_t> roots;  // of the runs, newest first; 1..kMaxRunsPerVersion
    std::vector<Range> records;        // ascending and apart; roots and map blocks among them
    std::vector<std::uint64_t> packs;  // that the runs name; ascending
    bool operator==(const Part&) const = default;
  };
  std::vector<RecordRef> records;  // ascending; parts refer to them by index
  // The size of each record where references put it, header and padding included, in units of
  // kRecordAlignBytes; 0: unknown.
  std::vector<std::uint32_t> lines;
  std::vector<Part> parts;
  bool operator==(const GcCensus&) const = default;
};

// Returns an empty vector when the file would exceed the limit.
std::vector<std::byte> encode_gc_census(const GcCensus& live_set, const Uuid& store_id);
// nullptr, or a description of the error. A decoded live set keeps to all constraints above.
const char* decode_gc_census(std::span<const std::byte> bytes, const Uuid& store_id, GcCensus& out);

}  // namespace vellum::format
