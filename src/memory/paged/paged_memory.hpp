// memory/paged/paged_memory.hpp: memory whose pages are filled by faults and evicted when memory is
// short.
//
// Pages are filled and evicted by chunks (memory/paging/chunk_table.hpp). An engine (memory/engine)
// derives from this class and implements EngineHooks. This class implements RegionMemory with parts
// that have one job each and share a PagedState:
//  - ChunkFiller fills chunks; FillPolicy decides how much a fault fills;
//  - Evictor evicts chunks; EvictionPolicy decides which;
//  - ReadAhead, Prefetcher and BulkLoader fill chunks before they are accessed: by faults and
//    advice, by the last working set, and all of a version;
//  - RangeLoader loads the ranges that a program needs in memory;
//  - Reclaimer drops private copies without use; ReclaimSchedule decides when;
//  - VersionSharing fills chunks of a version that other processes read, too;
//  - HugePages combines the pages of a version;
//  - MemoryAccount counts pages for the pager and for memory_use().
// paged_memory.cpp has the life of the memory, faults, advice and size; paged_memory_commit.cpp has
// commits and rollbacks.
//
// Signal context: on_fault() and all that it calls. It allocates nothing and takes only
// HandlerLocks, none of which is ever held while region memory is accessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/kernel/fault_router.hpp"
#include "memory/memory.hpp"
#include "memory/paged/bulk_loader.hpp"
#include "memory/paged/evictor.hpp"
#include "memory/paged/fill/chunk_filler.hpp"
#include "memory/paged/fill/engine_hooks.hpp"
#include "memory/paged/fill/paged_state.hpp"
#include "memory/paged/fill/prefetcher.hpp"
#include "memory/paged/fill/version_sharing.hpp"
#include "memory/paged/huge_pages.hpp"
#include "memory/paged/memory_account.hpp"
#include "memory/paged/range_loader.hpp"
#include "memory/paged/read_ahead.hpp"
#include "memory/paged/reclaimer.hpp"
#include "memory/paging/fill_policy.hpp"

namespace vellum::region {

class PagedMemory : public RegionMemory,
                    public FaultTarget,
                    protected EngineHooks,
                    private FillSupport {
 public:
  // Starts to serve faults, and joins the pager and read-ahead. Once, before the first use.
  void start();

  // RegionMemory.
  FileBehind* file_behind() noexcept override { return nullptr; }
  bool serves_system_calls() const noexcept override { return false; }
  bool needs_handlers() const noexcept override { return !options_.fault_thread; }
  MemoryUse use() noexcept override { return account_.use(); }
  bool make_present(PageNumber first, std::size_t count,
                    store::ReadFailure& failure) noexcept override {
    return ranges_.load(first, count, failure);
  }
  bool make_present(std::span<const format::PageRange> ranges,
                    store::ReadFailure& failure) override {
    return ranges_.load(ranges, failure);
  }
  void make_huge(PageNumber first, std::size_t count) override { huge_.collapse(first, count); }
  void advise(PageNumber first, std::size_t count, Advice advice) override;
  std::size_t untouched_zeros(PageNumber first, std::size_t limit) const noexcept override;
  bool holds_nothing(PageNumber page) const noexcept override { return state_.holds_nothing(page); }
  void hold(PageNumber first, std::size_t count) noexcept override;
  void release(PageNumber first, std::size_t count) noexcept override;
  bool is_present(PageNumber page) const noexcept override {
    return state_.chunks.is_present(chunk_of(page)) && !state_.absent.test(page);
  }
  void collect_dirty(std::vector<PageNumber>& out,
                     const std::vector<PageNumber>* known = nullptr) override;
  void discard(const std::vector<PageNumber>& pages) override;
  const std::byte* base_copy_of(PageNumber page) const noexcept override {
    return state_.backing.has_base_copy(page) ? state_.backing.base_copy(page) : nullptr;
  }
  bool is_bare(PageNumber page) const noexcept override { return state_.is_bare(page); }
  void note_newer(PageNumber page) noexcept override { state_.note_newer(page); }
  void stay_within_limit() noexcept override;
  bool has_spilled() const noexcept override { return state_.has_spilled(); }
  bool take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) override;
  bool wants_source() const noexcept override;
  void begin_committing() noexcept override { evictor_.begin_committing(); }
  void end_committing() noexcept override { evictor_.end_committing(); }
  void note_commit_end() noexcept override { reclaimer_.note_commit_end(); }
  void replace_source(std::shared_ptr<store::PageSource> source,
                      const std::vector<PageNumber>& taken) override;
  void give_back(const std::vector<PageNumber>& taken, std::vector<PageNumber>& present) override;
  void resize(std::uint64_t size_bytes) override;
  std::vector<format::PageRange> working_set() override;

  // FaultTarget.
  FaultResult on_fault(const Fault& fault) noexcept override;

  // For the owner of MemoryOptions::reclaim_clock.
  Reclaimer& reclaimer() noexcept { return reclaimer_; }

 protected:
  PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
              EngineTraits traits);
  // An engine's destructor calls this first: afterwards no fault and no thread of the process uses
  // the object.
  void stop_service() noexcept;

 private:
  PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
              EngineTraits traits, const std::shared_ptr<MemfdBacking>& base_copies);

  // paged_memory.cpp. `false` leaves the reason in `failure`.
  bool serve_present(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept;
  bool serve_missing(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept;
  void drop_chunks(PageNumber first, std::size_t count);
  void grow(std::uint64_t old_size, std::uint64_t new_size);
  void shrink(std::uint64_t old_size, std::uint64_t new_size);
  int open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept;

  // FillSupport.
  std::size_t make_room(std::size_t pages) noexcept override { return evictor_.make_room(pages); }
  bool fill_shared(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                   ChunkMapping mapping) noexcept override {
    return sharing_.fill(index, pages, failure, mapping);
  }

  // paged_memory_commit.cpp
  void settle_taken(const std::vector<PageNumber>& taken, bool durable,
                    std::vector<PageNumber>& present);
  void put_back_present(std::span<const PageNumber> pages);
  void restore_base_copies(const std::vector<PageNumber>& pages);
  void forget_newer() noexcept;

 protected:  // used by engines
  PagedState state_;

 private:
  Evictor evictor_{state_, *this, sharing_, prefetcher_};
  Prefetcher prefetcher_{state_, *this, filler_};

 protected:  // used by engines
  ChunkFiller filler_{state_, *this, *this};
  VersionSharing sharing_{state_, *this, filler_, prefetcher_};

 private:
  BulkLoader bulk_loader_{state_, filler_, sharing_, prefetcher_};
  RangeLoader ranges_{state_, filler_, sharing_};
  HugePages huge_{state_, ranges_};
  ReadAhead read_ahead_{state_, filler_, evictor_, prefetcher_, bulk_loader_};
  MemoryAccount account_{state_, *this, evictor_, sharing_};
  Reclaimer reclaimer_{state_, *this, account_};
  FillPolicy fill_policy_;
  bool joined_ = false;  // the pager uses this memory
};

}  // namespace vellum::region
