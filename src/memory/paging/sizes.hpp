// memory/paging/sizes.hpp: the units in which a region's memory comes in, leaves and is scanned.
#pragma once

#include <cstddef>

#include "format/wire/types.hpp"

namespace vellum::region {

using format::kPageBytes;
using format::PageNumber;

// A chunk comes in and leaves as a whole. It has at most as many pages as a word has bits: one bit
// holds what is known of a page.
inline constexpr std::size_t kDefaultChunkBytes = 64u << 10;
inline constexpr std::size_t kMaxChunkPages = 64;

// The range of one page table of the processor: the unit of scans for writes.
inline constexpr std::size_t kTableBytes = 2u << 20;
inline constexpr std::size_t kTablePages = kTableBytes / kPageBytes;

}  // namespace vellum::region
