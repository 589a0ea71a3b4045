// region/memory/memory_scratch.hpp: buffers of a page-in or an eviction. Internal to RegionMemory.
#pragma once

#include "region/memory/memory.hpp"

namespace vellum::region {

struct RegionMemory::Scratch {
  base::HandlerLock lock;
  base::Reservation memory;
  std::byte* old = nullptr;     // one chunk: committed content
  std::byte* own = nullptr;     // one chunk: the program's content
  std::byte* record = nullptr;  // one record of the spill file
  std::byte* batch = nullptr;   // for a SpillFile::Batch of one chunk's pages
  std::byte* place = nullptr;   // one chunk of address space, for pages that are moved away
};

}  // namespace vellum::region
