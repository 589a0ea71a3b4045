// memory/paged/fill/paged_state.hpp: the state of paged memory that its parts share: tables,
// counts and policies.
//
// Each part (ChunkFiller, Evictor, ReadAhead, ...) has one job and changes the state of a chunk
// only while it has claimed it in `chunks`.
//
// Any context, any number of threads, unless noted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/copies/memfd_backing.hpp"
#include "memory/copies/scratch.hpp"
#include "memory/copies/spill_file.hpp"
#include "memory/options.hpp"
#include "memory/paged/fill/engine_hooks.hpp"
#include "memory/paging/chunk_table.hpp"
#include "memory/paging/eviction_policy.hpp"
#include "memory/paging/gate.hpp"
#include "memory/paging/live_source.hpp"
#include "memory/paging/page_bits.hpp"
#include "memory/paging/pager.hpp"
#include "memory/paging/partial_fill_policy.hpp"
#include "memory/paging/read_streams.hpp"
#include "memory/paging/working_set.hpp"

namespace vellum::region {

// How the pages of a filled chunk are mapped. now: at once. by_write: writes follow, and the kernel
// copies the pages for them. by_touch: at the first access (prefetch).
enum class ChunkMapping { now, by_write, by_touch };

class PagedState {
 public:
  // The references outlive the state. Throws Errc::out_of_memory.
  PagedState(const MemoryOptions& options, EngineTraits traits, LiveSource& source,
             const std::atomic<std::uint64_t>& size_bytes, std::byte* data, MemfdBacking& backing);
  PagedState(const PagedState&) = delete;
  PagedState& operator=(const PagedState&) = delete;

  // Sizes.
  std::uint64_t size_bytes() const noexcept { return size_bytes_.load(std::memory_order_acquire); }
  PageNumber size_pages() const noexcept { return size_bytes() / kPageBytes; }
  std::size_t chunk_pages() const noexcept { return std::size_t{1} << chunk_shift_; }
  std::size_t chunk_bytes() const noexcept { return chunk_pages() * kPageBytes; }
  std::size_t chunk_of(PageNumber page) const noexcept { return page >> chunk_shift_; }
  std::size_t chunks_of(std::uint64_t bytes) const noexcept {
    return (bytes + chunk_bytes() - 1) / chunk_bytes();
  }
  std::size_t chunk_count() const noexcept { return chunks_of(size_bytes()); }
  std::size_t table_count() const noexcept {
    return (size_bytes() + kTableBytes - 1) / kTableBytes;
  }
  // How many pages of a chunk are within the size.
  std::size_t pages_of(std::size_t index) const noexcept {
    const PageNumber first = index * chunk_pages(), end = size_pages();
    return first < end ? std::min<std::size_t>(chunk_pages(), end - first) : 0;
  }
  std::byte* address_of(PageNumber page) const noexcept { return data_ + page * kPageBytes; }

  // Content.

  // How many pages from `first` on, at most `pages`, are zero in the source.
  std::size_t zeros_from(PageNumber first, std::size_t pages) const noexcept {
    const LiveSourceReader reader(source);
    return reader.get() != nullptr ? reader->zeros_from(first, pages) : pages;
  }
  // Whether the page's chunk is missing, and all of it would be filled with zeros.
  bool holds_nothing(PageNumber page) const noexcept;
  // Whether read-ahead may fill the chunk. Zeros are filled by 2 MiB anyway, and count as memory.
  bool worth_reading_ahead(std::size_t index) const noexcept;
  // Whether a page equals its base copy, or is zero and has none, but is not bare. Other threads
  // may be writing it.
  bool equals_base_copy(PageNumber page) const noexcept;
  bool is_bare(PageNumber page) const noexcept {
    return bare.test(page) && !backing.has_base_copy(page);
  }
  // Whether the page is a zero that is mapped nowhere, in a chunk that is present.
  bool is_untouched(PageNumber page) const noexcept {
    const unsigned sole = chunks[chunk_of(page)].sole_mapped_page.load();
    return sole != 0 && page % chunk_pages() != sole - 1 && !backing.has_base_copy(page);
  }
  bool has_spilled() const noexcept { return spill && spill->pages() != 0; }
  // Which of a chunk's pages are in the spill file, one bit each.
  std::uint64_t spilled_in(PageNumber first, std::size_t pages) const noexcept {
    return spill ? spill->held_in(first, pages) : 0;
  }

  // Events. REQUIRES: the calling thread has claimed the chunk.
  void note_arrival(std::size_t index, ChunkMapping mapping = ChunkMapping::now) noexcept;
  // `unused`: it was prefetched and never accessed.
  void note_departure(std::size_t index, bool unused) noexcept;

  // The base copy of the page becomes newer than the source. REQUIRES: its chunk is claimed or
  // held.
  void note_newer(PageNumber page) noexcept {
    Chunk& chunk = chunks[chunk_of(page)];
    if (chunk.newer.load(std::memory_order_relaxed) == 0 && chunk.newer.exchange(1) == 0) {
      newer_chunks.fetch_add(1);
    }
  }
  // Pages are lost: the next commit fails with this reason.
  void lose(const char* why) noexcept {
    const char* none = nullptr;
    lost.compare_exchange_strong(none, why);
  }

  // Counts.
  void add_private(std::int64_t pages) noexcept {
    private_pages.fetch_add(pages, std::memory_order_relaxed);
    pager->add_pages(pages);
  }
  // Pages count before they are mapped, since a thread that accesses them continues at once. Those
  // of a failed mapping no longer count.
  class AddedPrivate {
   public:
    AddedPrivate(PagedState& state, std::int64_t pages) noexcept : state_(state), pages_(pages) {
      if (pages_ != 0) state_.add_private(pages_);
    }
    AddedPrivate(const AddedPrivate&) = delete;
    AddedPrivate& operator=(const AddedPrivate&) = delete;
    // Returns `error`, the mapping's.
    int settle(int error) const noexcept {
      if (error != 0 && pages_ != 0) state_.add_private(-pages_);
      return error;
    }

   private:
    PagedState& state_;
    const std::int64_t pages_;
  };
  // Publishes the counts for other processes; called once for all chunks that a fault fills.
  void note_memory() noexcept {
    counters.note_resident(backing.base_copy_pages() + private_pages.load());
    if (spill) counters.note_spilled(spill->pages(), spill->put_bytes());
  }

 private:
  const std::atomic<std::uint64_t>& size_bytes_;
  std::byte* const data_;
  const unsigned chunk_shift_;  // log2 of the pages of a chunk
  Counters uncounted_;          // where the options name no counters

 public:
  const MemoryOptions& options;
  const EngineTraits traits;
  LiveSource& source;
  MemfdBacking& backing;
  const std::shared_ptr<Pager> pager;
  Counters& counters;

  ChunkTable chunks;
  ScratchSet scratches;
  std::unique_ptr<SpillFile> spill;  // null: read-only, or no directory for it
  // Pages that were refilled from the spill file whole, without a read of the source. A page that
  // has got a base copy since is no longer bare.
  PageBits bare;
  // Pages of present chunks that are not in memory (partial fills). An absent page has neither a
  // base copy nor private content; it may be in the spill file.
  PageBits absent;

  ReadStreams streams;
  EvictionPolicy eviction{chunks, streams};
  PartialFillPolicy partial_fills;
  std::unique_ptr<WorkingSet> working_set;  // null: not recorded

  Gate evictions;      // closed while a page must not be evicted behind a scan
  Gate reading_ahead;  // closed while pages are put back and while the region shrinks

  std::atomic<std::int64_t> private_pages{0};
  std::atomic<std::uint32_t> newer_chunks{0};
  std::atomic<const char*> lost{nullptr};  // why pages were lost; null: none were
};

}  // namespace vellum::region
