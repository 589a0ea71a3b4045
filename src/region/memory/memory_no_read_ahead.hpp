// region/memory/memory_no_read_ahead.hpp: guard that stops read-ahead while pages are put back.
// Internal to RegionMemory.
#pragma once

#include <sched.h>

#include "region/memory/memory.hpp"

namespace vellum::region {

class RegionMemory::NoReadAhead {
 public:
  // Waits for the step in progress. REQUIRES: this thread has no chunk claimed or held.
  explicit NoReadAhead(RegionMemory& memory) noexcept : memory_(memory) {
    memory_.read_ahead_stopped_.fetch_add(1);
    while (memory_.reading_ahead_.load() != 0) sched_yield();
  }
  ~NoReadAhead() {
    memory_.read_ahead_stopped_.fetch_sub(1);
    if (ReadAhead* const ahead = memory_.read_ahead_.load()) ahead->wake();
  }
  NoReadAhead(const NoReadAhead&) = delete;
  NoReadAhead& operator=(const NoReadAhead&) = delete;

 private:
  RegionMemory& memory_;
};

}  // namespace vellum::region
