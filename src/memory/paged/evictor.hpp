// memory/paged/evictor.hpp: evicts chunks. Clean pages are forgotten, dirty pages go to the spill
// file.
//
// EvictionPolicy chooses the chunks. An eviction
//  1. claims a chunk: a thread that accesses a page that is not mapped waits;
//  2. freezes it: no thread can change its pages;
//  3. compares private pages with their base copies;
//  4. forgets all of it, or restores everything as it was.
// The region's other threads run on, except those that access this chunk. A chunk is not evicted
// while it is held, or while its base copies are newer than the source.
//
// Signal context: all of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "memory/paged/fill/paged_state.hpp"

namespace vellum::region {

class Prefetcher;
class VersionSharing;

// What an eviction does when pages differ from the last commit. spill: they go to the spill file,
// and the chunk is evicted. stay: the chunk stays. all_stay: the chunk stays even when no page
// differs; private copies that equal their base copies are dropped.
enum class WhenDirty { spill, stay, all_stay };

class Evictor {
 public:
  // The references outlive the evictor; the constructor uses none of them.
  Evictor(PagedState& state, EngineHooks& engine, VersionSharing& sharing,
          Prefetcher& prefetcher) noexcept
      : state_(state), engine_(engine), sharing_(sharing), prefetcher_(prefetcher) {}
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;

  // Frees about `pages` pages; returns how many.
  std::size_t make_room(std::size_t pages) noexcept;
  // Makes room for `pages` pages; if that is not possible now, the fault waits for a while.
  void await_room(std::size_t pages) noexcept;
  // Evicts a chunk if it is present and not held. Returns how many pages are free now.
  std::size_t evict(std::size_t index, WhenDirty when_dirty = WhenDirty::spill) noexcept;

  // While commits find, encode and write pages.
  void begin_committing() noexcept { committing_.fetch_add(1); }
  void end_committing() noexcept { committing_.fetch_sub(1); }

 private:
  std::size_t evict_claimed(std::size_t index, WhenDirty when_dirty) noexcept;
  std::size_t evict_hinted(std::size_t pages) noexcept;
  bool worth_evicting(FrozenChunk& frozen, bool newer, WhenDirty when_dirty) noexcept;
  std::size_t finish_eviction(FrozenChunk& frozen, std::byte* room, WhenDirty when_dirty,
                              bool& gone) noexcept;
  bool spill_changed(const FrozenChunk& frozen, std::byte* room, std::uint64_t& changed,
                     WhenDirty when_dirty) noexcept;
  void put_off_spilling(int error) noexcept;
  void undo_eviction(const FrozenChunk& frozen, std::uint64_t changed,
                     WhenDirty when_dirty) noexcept;

  PagedState& state_;
  EngineHooks& engine_;
  VersionSharing& sharing_;
  Prefetcher& prefetcher_;
  std::atomic<int> committing_{0};               // commits in progress
  std::atomic<std::int64_t> spill_retry_ns_{0};  // it was full: no retry before this time
};

}  // namespace vellum::region
