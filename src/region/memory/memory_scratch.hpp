// region/memory/memory_scratch.hpp: what a page-in or an eviction works in. Internal to
// RegionMemory.
#pragma once

#include "region/memory/memory.hpp"

namespace vellum::region {

struct RegionMemory::Scratch {
  base::HandlerLock lock;
  base::Reservation memory;
  std::byte* old = nullptr;     // a chunk: committed content
  std::byte* own = nullptr;     // a chunk: what the program has written
  std::byte* record = nullptr;  // a record of the stash
  std::byte* batch = nullptr;   // of a Stash::Batch of a chunk's pages
  std::byte* place = nullptr;   // a chunk of address space, for pages that are moved away
};

}  // namespace vellum::region
