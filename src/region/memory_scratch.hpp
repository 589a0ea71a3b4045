// region/memory_scratch.hpp: what a page-in or an eviction works in. Internal to RegionMemory.
#pragma once

#include "region/memory.hpp"

namespace vellum::region {

struct RegionMemory::Scratch {
  base::HandlerLock lock;
  base::Reservation memory;
  std::byte* old = nullptr;     // a chunk: committed content
  std::byte* own = nullptr;     // a chunk: what the program has written
  std::byte* record = nullptr;  // a record of the stash
  std::byte* batch = nullptr;   // Stash::Batch::kBytes
  std::byte* place = nullptr;   // a chunk of address space, for pages that are moved away
  static constexpr std::size_t kBytes = 3 * kChunkBytes + 2 * kChunkBytes + kPageBytes * 2;
};
static_assert(Stash::Batch::kBytes <= 2 * kChunkBytes);
static_assert(Stash::Batch::kRecordBytes <= 2 * kPageBytes);

}  // namespace vellum::region
