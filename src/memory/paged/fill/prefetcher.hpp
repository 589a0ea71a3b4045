// memory/paged/fill/prefetcher.hpp: the working set: fills the chunks that the last use of the
// region accessed, and records those that this use accesses.
//
// A prefetched chunk is in the memfd, and nothing maps it; it is as present as any other. An access
// maps it: under engine uffd by the kernel, which shows only in its page tables; under engine
// sigsegv by a fault. A prefetched chunk without a mapped page is therefore unused, and is removed
// from the set. A chunk that is filled by a fault or by advice counts as used, and so do its
// neighbours where the kernel maps more around a fault (64 KiB) than a chunk has: versions with
// smaller chunks, engine uffd.
#pragma once

#include <cstddef>
#include <vector>

#include "format/working_set.hpp"
#include "memory/paged/fill/paged_state.hpp"

namespace vellum::region {

class ChunkFiller;

class Prefetcher {
 public:
  // The references outlive the prefetcher; the constructor uses none of them.
  Prefetcher(PagedState& state, EngineHooks& engine, ChunkFiller& filler) noexcept
      : state_(state), engine_(engine), filler_(filler) {}
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts to record, and plans to prefetch the last working set. REQUIRES: no chunk was filled
  // yet.
  void start();

  // Whether chunks of the last working set are left. Any context.
  bool has_candidates() const noexcept {
    return state_.working_set && state_.working_set->has_candidates();
  }
  // Prefetches one chunk, or skips a stretch that needs none. False: nothing is left. Any context.
  bool step() noexcept;
  // In the fault handler: while another thread fills chunk `index`, prefetches the next ones.
  // Otherwise a program that repeats its last run would wait for each.
  void step_while_claimed(std::size_t index) noexcept;
  // Ends prefetching.
  void end() noexcept {
    if (state_.working_set) state_.working_set->end();
  }

  // Whether the chunk was prefetched and not accessed since. Any context.
  bool is_unused(std::size_t index) const noexcept;
  // The chunks that are in use, in order of their first fill. REQUIRES: no thread uses the region.
  std::vector<format::PageRange> used_ranges() const;

 private:
  PagedState& state_;
  EngineHooks& engine_;
  ChunkFiller& filler_;
};

}  // namespace vellum::region
