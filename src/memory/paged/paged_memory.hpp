// memory/paged/paged_memory.hpp: memory whose pages come in by faults and leave when memory is
// short.
//
// Pages come in and leave by chunks (memory/paging/chunk_table.hpp). This class says when; an
// engine (region/engine) says how: how a fault arrives, how a page is shown, how writes are
// noticed. Each source file has one part:
//  - paged_memory.cpp: its life, faults, holds, size;
//  - paged_fill.cpp: a chunk comes in, from the source, from the spill file, or as zeros;
//  - paged_part.cpp: a part of a chunk comes in;
//  - paged_zeros.cpp: pages that are zero: what never comes in, and what a write brings in;
//  - paged_evict.cpp: a chunk leaves; clean pages are forgotten, dirty pages go to the spill file;
//  - paged_commit.cpp: what a commit or a rollback takes from memory and brings back;
//  - paged_reclaim.cpp: private copies that are of no use go back;
//  - paged_use.cpp: how much memory and spill file the region takes;
//  - paged_advice.cpp: the program's advice;
//  - paged_read_ahead.cpp: chunks that are likely to be touched soon come in early;
//  - paged_prefetch.cpp: the working set, which comes in at the opening;
//  - paged_bulk_load.cpp: all of a version that is read at many places comes in;
//  - paged_ranges.cpp: a program brings in several ranges, or a large one;
//  - paged_shared.cpp: pages of a version that other processes read, too;
//  - paged_huge.cpp: huge pages of a version.
//
// Signal context: on_fault() and everything it calls. It allocates nothing and takes only
// HandlerLocks, none of which is ever held while region memory is touched.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "memory/copies/memfd_backing.hpp"
#include "memory/copies/scratch.hpp"
#include "memory/kernel/fault_router.hpp"
#include "memory/memory.hpp"
#include "memory/paging/bulk_load.hpp"
#include "memory/paging/chunk_table.hpp"
#include "memory/paging/gate.hpp"
#include "memory/paging/helper_thread.hpp"
#include "memory/paging/leave_first.hpp"
#include "memory/paging/page_bits.hpp"
#include "memory/paging/pager.hpp"
#include "memory/paging/parts_measured.hpp"
#include "memory/paging/read_streams.hpp"
#include "memory/paging/working_set.hpp"

namespace vellum::region {

class PagedMemory : public RegionMemory, public FaultTarget, public Pageable {
 public:
  ~PagedMemory() override;

  // Begins to serve faults, and joins the pager and read-ahead. Once, before the first use.
  void start();

  // RegionMemory.
  FileBehind* file_behind() noexcept override { return nullptr; }
  bool serves_system_calls() const noexcept override { return false; }
  bool needs_handlers() const noexcept override { return !options_.fault_thread; }
  MemoryUse use() noexcept override;  // counts
  bool make_present(PageNumber first, std::size_t count,
                    store::ReadFailure& failure) noexcept override;
  bool make_present(std::span<const format::PageRange> ranges,
                    store::ReadFailure& failure) override;
  void make_huge(PageNumber first, std::size_t count) override;
  void advise(PageNumber first, std::size_t count, Advice advice) override;
  std::size_t untouched_zeros(PageNumber first, std::size_t limit) const noexcept override;
  bool holds_nothing(PageNumber page) const noexcept override;
  void hold(PageNumber first, std::size_t count) noexcept override;
  void release(PageNumber first, std::size_t count) noexcept override;
  bool is_present(PageNumber page) const noexcept override {
    return chunks_.is_present(chunk_of(page)) && !absent_.test(page);
  }
  void collect_dirty(std::vector<PageNumber>& out,
                     const std::vector<PageNumber>* known = nullptr) override;
  void discard(const std::vector<PageNumber>& pages) override;
  const std::byte* base_copy_of(PageNumber page) const noexcept override {
    return backing_.has_base_copy(page) ? backing_.base_copy(page) : nullptr;
  }
  bool is_bare(PageNumber page) const noexcept override {
    return bare_.test(page) && !backing_.has_base_copy(page);
  }
  void note_newer(PageNumber page) noexcept override;
  void stay_within_limit() noexcept override;
  bool has_spilled() const noexcept override { return spill_ && spill_->pages() != 0; }
  bool take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) override;
  bool wants_source() const noexcept override;
  void note_commit_end() noexcept override;
  void replace_source(std::shared_ptr<store::PageSource> source,
                      const std::vector<PageNumber>& taken) override;
  void give_back(const std::vector<PageNumber>& taken, std::vector<PageNumber>& present) override;
  void resize(std::uint64_t size_bytes) override;
  std::vector<format::PageRange> working_set() override;

  // FaultTarget, Pageable.
  FaultResult on_fault(const Fault& fault) noexcept override;
  std::size_t make_room(std::size_t pages) noexcept override;
  void begin_committing() noexcept override { committing_.fetch_add(1); }
  void end_committing() noexcept override { committing_.fetch_sub(1); }
  void measure() noexcept override;
  std::int64_t untold_pages() const noexcept override;
  void tidy() noexcept override;

 protected:
  // What holds for all memory of an engine.
  struct Traits {
    int fault_signal;        // with which a page asks to come in or to be opened for writing
    bool zeros_take_memory;  // reading zero pages takes memory
    // A write can bring in private pages, and the kernel itself copies a base copy that is not
    // mapped at the first write. Then a write fault maps nothing that the write replaces.
    bool writes_unmapped;
  };
  PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
              Traits traits);

  // What an engine does. Except begin_service(), protect_beyond(), find_dirty(), put_back() and
  // count_own(), all of it runs in signal context, too. An `int` is 0 or errno.

  // Gets what the engine needs, and routes faults to this object.
  virtual void begin_service() = 0;
  // An engine's destructor calls this first: afterwards no fault and no pager reaches the object.
  void stop_service() noexcept;

  // Pages between the two sizes become accessible, or no longer are.
  virtual int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept = 0;
  // Maps pages without a base copy. REQUIRES: none of them is in use: their chunks are being
  // filled, or discard() runs.
  virtual int map_zero(PageNumber first, std::size_t count) noexcept = 0;
  // Places private zeros where nothing is mapped, for writing. REQUIRES: no base copies; their
  // chunk is claimed.
  virtual int place_zeros(PageNumber first, std::size_t count) noexcept = 0;
  // Maps pages whose base copies were just written.
  virtual int map_present(PageNumber first, std::size_t count) noexcept = 0;
  // Precedes the writing of base copies that stay unmapped until they are touched: reading them
  // must not count as writing. REQUIRES: nothing is mapped there.
  virtual int prepare_unmapped(PageNumber first, std::size_t count) noexcept = 0;
  // Whether a page is mapped that no fault has reported. (A page that the kernel has swapped out
  // may not count.)
  virtual bool kernel_has_mapped(PageNumber first, std::size_t count) noexcept = 0;
  // Opens a page that is not accessible although its chunk was present. If the chunk is claimed by
  // now, nothing is done, and the access faults again.
  virtual int resolve_present(PageNumber page, bool is_write) noexcept = 0;

  // Of collect_dirty(): finds the written pages and arms them again.
  virtual void find_dirty(std::vector<PageNumber>& out) = 0;
  // Drops the program's content of pages that are present: their base copies show.
  virtual void put_back(const std::vector<PageNumber>& pages) = 0;

  // Places private copies of pages side by side. After an error, some of them may be there, and a
  // second call places the others. REQUIRES: their chunk is claimed.
  virtual int place_private(PageNumber first, std::size_t count,
                            const std::byte* content) noexcept = 0;
  // Private copies are placed and all else is mapped: the copies count as written from now on.
  virtual void note_placed(PageNumber first, std::uint64_t pages) noexcept = 0;
  // Which pages of a range are private, one bit per page.
  virtual int find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept = 0;
  // Counts them in a range of any size. -1: not known.
  virtual std::int64_t count_own(PageNumber first, std::size_t count) noexcept = 0;

  // Whether some pages of a chunk are private, and none of these was written since the last
  // find_dirty().
  virtual bool is_unwritten(PageNumber first, std::size_t count) noexcept = 0;
  // Whether drop_equal() may be called now.
  virtual bool may_return_copies() noexcept = 0;
  // Drops private pages that equal their base copies, or are zero and have none; what equals them
  // shows. Returns how many. A concurrent write is not lost. REQUIRES: the chunks are claimed and
  // not held.
  virtual std::size_t drop_equal(PageNumber first, std::size_t count) noexcept = 0;
  // A fault by another signal than Traits::fault_signal.
  virtual FaultResult on_other_fault(PageNumber, const Fault&) noexcept {
    return FaultResult::not_ours;
  }

  // With MemoryOptions::shared, which the range maps: map_present() shows what lies there. 0 or errno.
  // REQUIRES: the chunk is claimed.
  // Takes pages out of the range; they stay in the file.
  virtual int unmap_shared(PageNumber first, std::size_t count) noexcept = 0;
  // Puts pages of this process's own there. REQUIRES: nothing is mapped there.
  virtual int place_unshared(PageNumber first, std::size_t count,
                             const std::byte* content) noexcept = 0;
  // Takes them away again.
  virtual int remove_unshared(PageNumber first, std::size_t count) noexcept = 0;

  // The state of one eviction. After freeze() nobody changes the pages.
  struct Frozen {
    PageNumber first = 0;
    std::size_t count = 0;
    std::uint64_t own = 0;  // private pages that may differ from their base copies, one bit each
    std::uint64_t base_copies = 0;     // pages that have base copies, one bit each
    std::uint64_t bare = 0;            // those that is_bare() is about
    std::uint64_t absent = 0;          // those that is_absent() is about
    const std::byte* pages = nullptr;  // where the private pages can be read
    std::byte* old = nullptr;          // copies of the base copies, chunk-sized
    // Address space for engines that move pages away, and leave them there.
    std::byte* place = nullptr;
  };
  // 0, or errno with nothing changed. REQUIRES: the chunk is claimed.
  virtual int freeze(Frozen& frozen) noexcept = 0;
  // Puts private pages back where `keep` says so; the others show their base copies.
  virtual int thaw(const Frozen& frozen, std::uint64_t keep) noexcept = 0;
  // Forgets the whole chunk. 0, or errno with nothing changed.
  virtual int forget(const Frozen& frozen) noexcept = 0;

  // What an engine may use.

  // Puts pages (one bit each) into memory: own content where `own` has a bit, base copies where
  // `base_copies` has one (written and noted), zero elsewhere. 0 or errno. REQUIRES: claimed,
  // nothing is mapped there.
  int show(PageNumber first, std::uint64_t pages, const std::byte* base_copy_content,
           std::uint64_t base_copies, const std::byte* own_content, std::uint64_t own) noexcept;
  // Whether the page is absent from a chunk that is present (paged_part.cpp).
  bool is_absent(PageNumber page) const noexcept { return absent_.test(page); }
  // Whether the page is a zero that is mapped nowhere, in a chunk that is present.
  bool is_untouched(PageNumber page) const noexcept;
  // Brings in the pages of a chunk of which only one is mapped: private zeros for writing, else
  // the zero page. 0 or errno. REQUIRES: claimed.
  int complete(std::size_t index, bool for_writing) noexcept;
  // Whether a page equals its base copy, or is zero and has none, but is not bare. Other threads may
  // be writing it.
  bool equals_base_copy(PageNumber page) const noexcept;
  // With MemoryOptions::shared, of a chunk that is present: whether it is of zeros, and otherwise shows
  // it again, as resolve_present() does.
  bool is_of_zeros(std::size_t index) const noexcept {
    return origin(index).load(std::memory_order_relaxed) == Origin::zeros;
  }
  int show_shared_again(std::size_t index) noexcept;
  // Pages are gone for good: the next commit fails, and says why.
  void lose(const char* why) noexcept;
  std::size_t chunk_bytes() const noexcept { return chunk_pages() * kPageBytes; }
  Counters& counters() const noexcept { return counters_; }
  const std::shared_ptr<Pager> pager_;
  MemfdBacking& backing_;  // base_copies_
  ChunkTable chunks_;

 private:
  // paged_memory.cpp
  PagedMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
              Traits traits, const std::shared_ptr<MemfdBacking>& base_copies);
  void grow(std::uint64_t old_size, std::uint64_t new_size);
  void shrink(std::uint64_t old_size, std::uint64_t new_size);
  int open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept;
  bool make_all_present(PageNumber first, std::size_t count, store::ReadFailure& failure) noexcept;
  bool make_chunks_present(PageNumber first, std::size_t count,
                           store::ReadFailure& failure) noexcept;
  std::size_t chunks_of(std::uint64_t size_bytes) const noexcept {
    return (size_bytes + chunk_bytes() - 1) / chunk_bytes();
  }

  // How many pages of a chunk lie within the size.
  std::size_t pages_of(std::size_t index) const noexcept {
    const PageNumber first = index * chunk_pages(), end = size_bytes() / kPageBytes;
    return first < end ? std::min<std::size_t>(chunk_pages(), end - first) : 0;
  }

  // paged_fill.cpp. `false` leaves the reason in `failure`.
  // by_write: writes follow, and the kernel copies the pages for them; by_touch: see
  // paged_prefetch.cpp.
  enum class Mapping { now, by_write, by_touch };
  // `written`: the page that a write has asked for.
  bool fill(std::size_t index, store::ReadFailure& failure,
            std::optional<PageNumber> written = std::nullopt) noexcept;
  bool fill_from_source(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                        Mapping mapping) noexcept;
  int show_committed(PageNumber first, std::size_t pages, const std::byte* content,
                     Mapping mapping) noexcept;
  bool fill_with_spill(std::size_t index, std::size_t pages, std::uint64_t spilled,
                       store::ReadFailure& failure) noexcept;
  // What comes into a claimed chunk: one bit per page.
  struct Part {
    std::uint64_t wanted = 0;   // nothing of it is in memory
    std::uint64_t spilled = 0;  // what the spill file has of it
    bool for_writing = false;   // a single page, which a write has asked for
  };
  bool bring(std::size_t index, const Part& part, store::ReadFailure& failure) noexcept;
  int show_for_writing(PageNumber page, const std::byte* base_copy_content) noexcept;
  struct Unspilled;
  bool read_committed_part(PageNumber first, std::uint64_t needed, Scratch& scratch,
                           Unspilled& found, store::ReadFailure& failure) noexcept;
  bool read_spilled(PageNumber first, std::uint64_t spilled, std::uint64_t whole, Scratch& scratch,
                    Unspilled& found, store::ReadFailure& failure) noexcept;
  void note_unspilled(std::size_t index, const Unspilled& found) noexcept;
  bool read_source(PageNumber first, std::size_t pages, std::byte* out, bool& zero,
                   store::ReadFailure& failure) noexcept;
  int place_own(PageNumber first, const std::byte* content, std::uint64_t own) noexcept;
  void note_arrival(std::size_t index, Mapping mapping = Mapping::now) noexcept;

  // paged_part.cpp. `false` leaves the reason in `failure`.
  bool wants_part(std::size_t index) noexcept;
  bool fill_part(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept;
  bool fill_rest(std::size_t index, store::ReadFailure& failure) noexcept;
  std::uint32_t claim_settled(std::size_t index) noexcept;

  // paged_zeros.cpp. `false` leaves the reason in `failure`.
  std::size_t zeros_from(PageNumber first, std::size_t pages) const noexcept;
  bool fill_zero(std::size_t index, std::size_t pages, store::ReadFailure& failure) noexcept;
  bool fill_zero_for_writing(std::size_t index, PageNumber written, std::size_t pages,
                             store::ReadFailure& failure) noexcept;
  bool has_mapped_neighbour(std::size_t index) const noexcept;

  // paged_evict.cpp
  // What evict() does when pages differ from what is committed. spilled: they go to the spill file
  // and the chunk leaves. stay: the chunk stays. all_stay: the chunk stays even when no page
  // differs.
  enum class Changed { spilled, stay, all_stay };
  std::size_t evict(std::size_t index, Changed what = Changed::spilled) noexcept;
  std::size_t evict_claimed(std::size_t index, Changed what) noexcept;
  std::size_t evict_first(std::size_t pages) noexcept;
  void await_room(std::size_t pages) noexcept;
  bool is_due(std::size_t index) noexcept;
  bool worth_evicting(Frozen& frozen, bool newer, Changed what) noexcept;
  std::size_t let_go(Frozen& frozen, std::byte* room, Changed what, bool& gone) noexcept;
  bool spill_changed(const Frozen& frozen, std::byte* room, std::uint64_t& changed,
                     Changed what) noexcept;
  void put_off_spilling(int error) noexcept;
  void undo_eviction(const Frozen& frozen, std::uint64_t changed, Changed what) noexcept;
  void note_departure(std::size_t index, bool unused) noexcept;

  // paged_commit.cpp
  void settle_taken(const std::vector<PageNumber>& taken, bool durable,
                    std::vector<PageNumber>& present);
  void put_back_present(std::span<const PageNumber> pages);
  void restore_base_copies(const std::vector<PageNumber>& pages);

  // paged_reclaim.cpp
  std::optional<std::chrono::milliseconds> reclaim() noexcept;  // for the thread that reclaims
  void note_found_written(const std::vector<PageNumber>& pages) noexcept;
  bool grows() const noexcept;
  bool too_many_private(std::int64_t pages) const noexcept;
  bool takes_much(std::int64_t pages) const noexcept;
  std::optional<std::chrono::milliseconds> pause_before_pass() noexcept;
  void count_next_table() noexcept;
  void reclaim_next_table() noexcept;
  bool rests(std::size_t index) noexcept;
  void return_copies(std::size_t index, std::size_t count) noexcept;

  // paged_use.cpp
  void add_private(std::int64_t pages) noexcept {
    private_pages_.fetch_add(pages, std::memory_order_relaxed);
    pager_->add_pages(pages);
  }
  void move_spilled(PageNumber page) noexcept;

  // paged_advice.cpp
  void drop_chunks(PageNumber first, std::size_t count);
  void want_chunks(PageNumber first, std::size_t count);
  bool next_wanted(std::size_t& index) noexcept;

  // paged_read_ahead.cpp
  std::optional<std::chrono::milliseconds> read_ahead() noexcept;  // for the thread that does
  void start_read_ahead();
  void join_read_ahead() noexcept;
  std::size_t most_ahead() const noexcept;
  void read_ahead_of(std::size_t index, bool for_writing) noexcept;
  bool worth_reading_ahead(std::size_t index) const noexcept;
  std::optional<PageNumber> first_if(bool for_writing, std::size_t index) const noexcept;
  void announce_spilled(const ReadStreams::Ahead& ahead) noexcept;
  bool make_room_ahead() noexcept;
  bool read_next() noexcept;
  class NoReadAhead;  // while it lives

  // paged_prefetch.cpp
  void make_working_set();
  bool prefetch_step() noexcept;
  void prefetch_beside(std::size_t index) noexcept;
  bool prefetch_chunk(std::size_t index) noexcept;
  bool map_all(std::size_t index, store::ReadFailure& failure) noexcept;
  bool is_unused(std::size_t index) noexcept;

  // paged_bulk_load.cpp
  void make_wide_load();
  void start_bulk_load(std::size_t index) noexcept;
  bool has_room_for_unit() noexcept;
  void load_unit(std::size_t unit) noexcept;
  bool load_next_unit() noexcept;
  bool load_step() noexcept;

  // paged_ranges.cpp. `false` leaves the reason in `failure`.
  using Ranges = std::vector<format::PageRange>;
  static bool is_worth_threads(std::size_t pages) noexcept;
  static Ranges units_of(std::span<const format::PageRange> ranges);
  std::size_t missing_pages(std::span<const format::PageRange> ranges) const noexcept;
  Ranges missing_in(std::span<const format::PageRange> units) const;
  bool may_be_remote() const noexcept;
  std::shared_ptr<const void> fetch_early(std::span<const format::PageRange> units) const;
  bool make_ranges_present(std::span<const format::PageRange> ranges, store::ReadFailure& failure);
  bool make_units_present(std::span<const format::PageRange> units, store::ReadFailure& failure);

  // paged_shared.cpp
  // What a chunk that is present is. filled_here: this region has put it
  // into the shared file; found: another one has. unshared: it could not be shared.
  enum class Origin : std::uint8_t { zeros, filled_here, found, unshared };
  std::atomic<Origin>& origin(std::size_t index) const noexcept {
    return reinterpret_cast<std::atomic<Origin>*>(origins_.data())[index];
  }
  bool fill_shared(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                   Mapping mapping) noexcept;
  enum class Shared { full, wrong, to_fill, late };
  Shared await_shared(std::size_t index) noexcept;
  bool may_fill_shared() const noexcept;
  int show_shared(std::size_t index, std::size_t count, Origin from, Mapping mapping) noexcept;
  void map_full(std::size_t index, std::size_t count) noexcept;
  void map_run(std::size_t index, std::size_t count) noexcept;
  void load_shared(std::size_t index, std::size_t count) noexcept;
  void load_shared_range(PageNumber first, std::size_t count) noexcept;
  std::size_t evict_shared(std::size_t index) noexcept;
  bool take_out_shared(std::size_t index) noexcept;
  void count_shared(std::size_t index, Origin from, std::int64_t pages) noexcept;

  // paged_huge.cpp
  int make_table_huge(std::size_t table) noexcept;

  // For other processes to see; once for all chunks that a fault brings in.
  void note_memory() noexcept {
    counters_.note_resident(backing_.base_copy_pages() + private_pages_.load());
    if (spill_) counters_.note_spilled(spill_->pages(), spill_->put_bytes());
  }

  const Traits traits_;
  Counters nothing_;
  Counters& counters_;  // of the options, or nothing_
  ScratchSet scratches_;
  bool joined_ = false;               // the pager knows this region
  std::unique_ptr<SpillFile> spill_;  // null: read-only, or no place for it
  // Pages that came back from the spill file whole, so that nothing had to be read from the source.
  // A page that has got a base copy since is no longer bare.
  PageBits bare_;
  PageBits absent_;
  PartsMeasured parts_;
  std::atomic<const char*> lost_{nullptr};

  std::atomic<std::int64_t> private_pages_{0};
  std::mutex measuring_;
  std::int64_t tidied_ns_ = 0;  // the pager's thread only

  Gate evictions_;  // closed while a page must not leave behind a scan's back
  LeaveFirst leave_first_;
  std::atomic<std::size_t> hand_{0};  // the chunk to look at next
  std::atomic<std::uint32_t> evicted_{0}, present_chunks_{0}, newer_chunks_{0};
  std::atomic<std::int64_t> spill_retry_ns_{0};  // it was full: no retry before this time

  Help<PagedMemory> help_ahead_{*this, &PagedMemory::read_ahead};
  std::atomic<HelperThread*> read_ahead_{nullptr};  // null: this region has not joined it
  Gate reading_ahead_;  // closed while pages are put back and while the region shrinks
  ReadStreams streams_;
  std::mutex wanted_mutex_;  // guards wanted_, and joining
  std::deque<ReadStreams::Window> wanted_;
  std::unique_ptr<WorkingSet> working_set_;    // null: not wanted
  std::unique_ptr<BulkLoad> wide_load_;        // null: none is made
  std::unique_ptr<base::ThreadPool> loaders_;  // the read-ahead thread's own

  // One pass of the thread that reclaims over the region; the thread's own.
  struct Pass {
    enum class Stage { none, count, reclaim };
    Stage stage = Stage::none;
    std::size_t table = 0;     // the next one to look at
    std::int64_t counted = 0;  // private pages, so far
    std::int64_t left = 0;     // private pages, at most
    std::uint32_t events = 0;  // of commits, as of the last look
    std::chrono::steady_clock::time_point changed, ended;
    bool quiet = false;       // no commit for a while
    bool done_quiet = false;  // the last pass since the last commit is done
  };
  Pass pass_;
  std::atomic<int> committing_{0};            // commits in progress
  std::atomic<bool> found_by_others_{false};  // the last scan was another tracker's
  std::atomic<std::uint32_t> scans_{0};
  std::atomic<std::uint32_t> commit_events_{0};  // scans, and ends of commits
  std::atomic<std::int64_t> found_written_{0};   // pages that scans have found since the last pass
  std::atomic<std::int64_t> base_copies_at_scan_{0};
  Help<PagedMemory> help_reclaim_{*this, &PagedMemory::reclaim};
  HelperThread* reclaimer_ = nullptr;  // null: this region has not joined it; commits' own

  base::Reservation origins_;           // one Origin per chunk, of a shared version
  std::atomic<bool> impatient_{false};  // the last wait for another reader was in vain
  // That count: see paged_shared.cpp. The others are of unshared chunks without base copies.
  std::atomic<std::int64_t> shared_pages_{0}, unshared_pages_{0};

  std::mutex huge_mutex_;       // guards huge_
  std::set<std::size_t> huge_;  // numbers of tables, whose chunks are held
};

}  // namespace vellum::region
