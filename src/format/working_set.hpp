// format/working_set.hpp: a file in hints/, the pages that the last use of a branch or a snapshot
// touched. It is only a hint for the next use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxWorkingSetBytes = 16u << 20;  // the whole file
inline constexpr std::uint32_t kMaxWorkingSetRanges = 1u << 20;

struct PageRange {
  PageNumber first = 0;
  std::uint64_t count = 1;
  bool operator==(const PageRange&) const = default;
};

// The owner, a branch or a snapshot. Names are reused; these numbers are not. `sequence` and
// `time_ns` are of a snapshot's version, and 0 for a branch.
struct WorkingSetOwner {
  std::uint64_t branch_id = 0;
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  bool operator==(const WorkingSetOwner&) const = default;
};

struct WorkingSet {
  WorkingSetOwner owner;
  // In the order of loading. They may overlap, and may exceed the region but not kMaxRegionBytes.
  std::vector<PageRange> ranges;
  bool operator==(const WorkingSet&) const = default;
};

// Stores only the first kMaxWorkingSetRanges ranges.
std::vector<std::byte> encode_working_set(const WorkingSet& set, const FileSeal& seal);
// nullptr, or a description of the error.
const char* decode_working_set(std::span<const std::byte> bytes, const FileSeal& seal,
                               WorkingSet& out);

}  // namespace vellum::format
