// format/working_set.hpp: a file in hints/: the pages of a branch or a snapshot that its last use
// touched, for the next use. It is only a hint.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMaxWorkingSetBytes = 16u << 20;  // the whole file
inline constexpr std::uint32_t kMaxWorkingSetRanges = 1u << 20;

struct PageRange {
  PageNumber first = 0;
  std::uint64_t count = 1;
  bool operator==(const PageRange&) const = default;
};

// The owner. Names are reused, these numbers are not: a branch has its id, and a snapshot also has
// the version that it is. The last two are 0 for a branch.
struct WorkingSetOwner {
  std::uint64_t branch_id = 0;
  std::uint64_t sequence = 0;
  std::int64_t time_ns = 0;
  bool operator==(const WorkingSetOwner&) const = default;
};

struct WorkingSet {
  WorkingSetOwner owner;
  // In the order in which they came in; below kMaxRegionBytes, but perhaps past the region's end.
  // They may overlap.
  std::vector<PageRange> ranges;
  bool operator==(const WorkingSet&) const = default;
};

// Ranges beyond kMaxWorkingSetRanges are left out.
std::vector<std::byte> encode_working_set(const WorkingSet& set, const Uuid& store_id);
// nullptr, or a description of the error.
const char* decode_working_set(std::span<const std::byte> bytes, const Uuid& store_id,
                               WorkingSet& out);

}  // namespace vellum::format
