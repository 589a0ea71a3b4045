// memory/paged/bulk_loader.hpp: loads all of a version that is read at many places, by all
// processors.
//
// The read-ahead thread and its helpers load units in the order of their pages. A thread that
// accesses a missing chunk loads the chunk's unit, unless another thread has taken it: it decodes
// as well, and accesses the next chunks of the unit without a fault. Records that several chunks
// need are decoded about once, because their chunks are loaded together.
//
// Only versions are bulk loaded. A branch's pages are filled as they are accessed: most of them
// would be armed and compared for nothing. Nor are versions that keep a working set, which records
// the order of accesses and prefetches those chunks.
#pragma once

#include <cstddef>
#include <memory>

#include "base/threads/thread_pool.hpp"
#include "memory/paged/fill/paged_state.hpp"
#include "memory/paging/bulk_load.hpp"

namespace vellum::region {

class ChunkFiller;
class Prefetcher;
class VersionSharing;

class BulkLoader {
 public:
  static constexpr std::size_t kUnitPages = kTablePages;

  // The references outlive the object; the constructor uses none of them.
  BulkLoader(PagedState& state, ChunkFiller& filler, VersionSharing& sharing,
             Prefetcher& prefetcher) noexcept
      : state_(state), filler_(filler), sharing_(sharing), prefetcher_(prefetcher) {}
  BulkLoader(const BulkLoader&) = delete;
  BulkLoader& operator=(const BulkLoader&) = delete;

  // Prepares the load of a version. REQUIRES: no chunk was filled yet.
  void prepare();
  // No unit is taken from now on. Any context.
  void end() noexcept {
    if (load_) load_->end();
  }
  // Null: this memory is never bulk loaded.
  BulkLoad* load() const noexcept { return load_.get(); }

  std::size_t unit_of(std::size_t index) const noexcept {
    return index * state_.chunk_pages() / kUnitPages;
  }
  // Takes the unit of a missing chunk. False: another thread has taken it, no load is in progress,
  // or memory is short, which ends the load. Any context.
  bool take_unit_of(std::size_t index) noexcept;
  // Fills the unit's missing chunks. REQUIRES: taken. Any context.
  void load_unit(std::size_t unit) noexcept;
  // Of a shared version: maps the full chunks of the unit of a missing chunk, and loads the unit if
  // the chunk is still missing. Nothing unless a load is in progress. Any context.
  void load_shared_unit_of(std::size_t index) noexcept;

  // A step of the read-ahead thread: of the last working set, then of the load. Its helpers live as
  // long as something is left to load. False: nothing is left.
  bool step() noexcept;

 private:
  bool has_room_for_unit() noexcept;
  bool load_next_unit() noexcept;
  std::size_t unit_chunks() const noexcept { return kUnitPages / state_.chunk_pages(); }

  PagedState& state_;
  ChunkFiller& filler_;
  VersionSharing& sharing_;
  Prefetcher& prefetcher_;
  std::unique_ptr<BulkLoad> load_;
  std::unique_ptr<base::ThreadPool> helpers_;  // the read-ahead thread's own
};

}  // namespace vellum::region
