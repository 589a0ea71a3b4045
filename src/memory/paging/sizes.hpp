// memory/paging/sizes.hpp: the units in which a region's memory is filled, evicted and scanned.
#pragma once

#include <cstddef>

#include "format/wire/types.hpp"

namespace vellum::region {

using format::kPageBytes;
using format::PageNumber;

// A chunk is filled and evicted as a whole. It has at most as many pages as a word has bits: the
// states of its pages are words with one bit each.
inline constexpr std::size_t kDefaultChunkBytes = 64u << 10;
inline constexpr std::size_t kMaxChunkPages = 64;

// The range of one page table of the processor: the unit of scans for writes.
inline constexpr std::size_t kTableBytes = 2u << 20;
inline constexpr std::size_t kTablePages = kTableBytes / kPageBytes;

}  // namespace vellum::region
