// memory/paged/fill/engine_hooks.hpp: the operations that an engine of paged memory implements.
//
// PagedMemory and its parts decide which pages are filled and evicted; an engine decides how: how a
// page is mapped, how writes are detected, how a chunk is frozen for its eviction.
//
// Signal context: all of it, except begin_service(), protect_beyond(), find_dirty(), put_back() and
// count_own(). An `int` is 0 or errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/kernel/fault_router.hpp"
#include "memory/paging/sizes.hpp"

namespace vellum::region {

// Constant properties of an engine.
struct EngineTraits {
  int fault_signal;        // raised for a page that is to be filled or opened for writing
  bool zeros_take_memory;  // reading zero pages takes memory
  // A write can create private pages, and the kernel itself copies a base copy that is not mapped
  // at the first write. Then a write fault maps nothing that the write replaces.
  bool writes_unmapped;
  // A page that the kernel maps by itself, once it is in the memfd, is not found unless it was
  // armed before.
  bool arms_holes;
  // EngineHooks::place_unshared() makes base copies, which MemfdBacking counts.
  bool unshared_are_base_copies;
};

// The state of one eviction. After freeze() no thread changes the pages.
struct FrozenChunk {
  PageNumber first = 0;
  std::size_t count = 0;
  std::uint64_t own = 0;  // private pages that may differ from their base copies, one bit each
  std::uint64_t base_copies = 0;     // pages that have base copies, one bit each
  std::uint64_t bare = 0;            // bare pages (RegionMemory::is_bare), one bit each
  std::uint64_t absent = 0;          // absent pages (PagedState::absent), one bit each
  const std::byte* pages = nullptr;  // the private pages, readable
  std::byte* old = nullptr;          // copies of the base copies, chunk-sized
  // Address space for engines that move the pages there, and leave them there.
  std::byte* place = nullptr;
};

class EngineHooks {
 public:
  virtual ~EngineHooks() = default;

  // Opens what the engine needs, and routes faults to the memory.
  virtual void begin_service() = 0;
  // Pages between the two sizes become accessible, or inaccessible.
  virtual int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept = 0;

  // Mapping.

  // Maps pages without a base copy. REQUIRES: no thread uses them: their chunks are being filled,
  // or discard() runs.
  virtual int map_zero(PageNumber first, std::size_t count) noexcept = 0;
  // Places private zeros where nothing is mapped, for writing. REQUIRES: no base copies; the chunk
  // is claimed.
  virtual int place_zeros(PageNumber first, std::size_t count) noexcept = 0;
  // Maps pages whose base copies were just written. With MemoryOptions::shared: the shared file's
  // content.
  virtual int map_present(PageNumber first, std::size_t count) noexcept = 0;
  // Precedes the writing of base copies that stay unmapped until they are accessed: reading them
  // must not count as writing. REQUIRES: nothing is mapped there.
  virtual int prepare_unmapped(PageNumber first, std::size_t count) noexcept = 0;
  // Precedes it where writes are expected: the base copies count as written.
  virtual void note_unarmed(PageNumber first, std::size_t count) noexcept = 0;
  // Whether a page is mapped that no fault has reported. (A page that the kernel has swapped out
  // may not count.)
  virtual bool kernel_has_mapped(PageNumber first, std::size_t count) noexcept = 0;
  // Opens a page that is not accessible although its chunk was present. If the chunk is claimed by
  // now, nothing is done, and the access faults again.
  virtual int resolve_present(PageNumber page, bool is_write) noexcept = 0;
  // A fault by another signal than EngineTraits::fault_signal.
  virtual FaultResult on_other_fault(PageNumber, const Fault&) noexcept {
    return FaultResult::not_ours;
  }

  // Dirty pages and private copies.

  // For collect_dirty(): finds the dirty pages and arms them again.
  virtual void find_dirty(std::vector<PageNumber>& out) = 0;
  // Drops the program's content of pages that are present: their base copies show.
  virtual void put_back(const std::vector<PageNumber>& pages) = 0;
  // Places private copies of adjacent pages. After an error, some of them may exist, and a second
  // call places the others. REQUIRES: the chunk is claimed.
  virtual int place_private(PageNumber first, std::size_t count,
                            const std::byte* content) noexcept = 0;
  // Private copies are placed and all other pages are mapped: the copies count as written from now
  // on.
  virtual void note_placed(PageNumber first, std::uint64_t pages) noexcept = 0;
  // Which pages of a range are private, one bit per page.
  virtual int find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept = 0;
  // Counts them in a range of any size. -1: unknown.
  virtual std::int64_t count_own(PageNumber first, std::size_t count) noexcept = 0;
  // Whether some pages of a chunk are private, and none of these was written since the last
  // find_dirty().
  virtual bool is_unwritten(PageNumber first, std::size_t count) noexcept = 0;
  // Whether drop_equal() may be called now.
  virtual bool may_drop_copies() noexcept = 0;
  // Drops private pages that equal their base copies, or are zero and have none; what equals them
  // shows. Returns how many. A concurrent write is not lost. REQUIRES: the chunks are claimed and
  // not held.
  virtual std::size_t drop_equal(PageNumber first, std::size_t count) noexcept = 0;

  // With MemoryOptions::shared. REQUIRES: the chunk is claimed.

  // Unmaps pages; they stay in the shared file.
  virtual int unmap_shared(PageNumber first, std::size_t count) noexcept = 0;
  // Places pages of this process only. REQUIRES: nothing is mapped there.
  virtual int place_unshared(PageNumber first, std::size_t count,
                             const std::byte* content) noexcept = 0;
  // Removes them again.
  virtual int remove_unshared(PageNumber first, std::size_t count) noexcept = 0;

  // Eviction.

  // 0, or errno with nothing changed. REQUIRES: the chunk is claimed.
  virtual int freeze(FrozenChunk& frozen) noexcept = 0;
  // Restores the private pages in `keep`; the others show their base copies.
  virtual int thaw(const FrozenChunk& frozen, std::uint64_t keep) noexcept = 0;
  // Forgets the whole chunk. 0, or errno with nothing changed.
  virtual int forget(const FrozenChunk& frozen) noexcept = 0;
};

}  // namespace vellum::region
