// memory/paged/paged_memory_no_read_ahead.hpp: guard that stops read-ahead while pages are put
// back. Internal to PagedMemory.
#pragma once

#include "memory/paged/paged_memory.hpp"

namespace vellum::region {

class PagedMemory::NoReadAhead {
 public:
  // Waits for the step in progress. REQUIRES: this thread has no chunk claimed or held.
  explicit NoReadAhead(PagedMemory& memory) noexcept : memory_(memory) {
    memory_.reading_ahead_.close();
  }
  ~NoReadAhead() {
    memory_.reading_ahead_.open();
    if (HelperThread* const ahead = memory_.read_ahead_.load()) ahead->wake();
  }
  NoReadAhead(const NoReadAhead&) = delete;
  NoReadAhead& operator=(const NoReadAhead&) = delete;

 private:
  PagedMemory& memory_;
};

}  // namespace vellum::region
