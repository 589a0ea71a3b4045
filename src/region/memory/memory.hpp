// region/memory/memory.hpp: the mapped range of a region: reservation, paging and write tracking.
//
// This file holds what the engines share. uffd_memory.cpp and sigsegv_memory.cpp hold the
// differences: how a fault arrives and how writes are noticed. Pages come in by chunks, of 64 KiB
// by default. A chunk is missing, claimed by one thread while others wait, or present. A claimed
// chunk is being filled or evicted, or its spilled pages are being read. A thread that has claimed
// a chunk touches no region memory.
//
// Eviction (memory_evict.cpp): when the pager reports too many pages, present chunks leave. Clean
// pages are forgotten, since the source has them; dirty pages go to the spill file. A chunk stays
// while it is held, and while its committed copies are newer than the source.
//
// Read-ahead (memory_advice.cpp): a thread of the process brings in chunks that are likely to be
// touched soon, as any other thread may. It pauses while pages are put back and while the region
// shrinks: NoReadAhead.
//
// Signal context: on_fault() and everything it calls. It allocates nothing and takes only
// HandlerLocks, none of which is ever held while region memory is touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <vellum/region.hpp>

#include "base/handler_lock.hpp"
#include "base/reserve.hpp"
#include "region/kernel/fault_router.hpp"
#include "region/paging/backing.hpp"
#include "region/paging/leave_first.hpp"
#include "region/paging/live_source.hpp"
#include "region/paging/pager.hpp"
#include "region/paging/read_ahead.hpp"
#include "region/paging/read_streams.hpp"
#include "region/paging/spill_file.hpp"
#include "region/paging/working_set.hpp"
#include "store/image/image_file.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::region {

using format::PageNumber;

// A chunk has at most as many pages as a word has bits: one bit holds what is known of a page.
inline constexpr std::size_t kDefaultChunkBytes = 64u << 10;
inline constexpr std::size_t kMostChunkPages = 64;
inline constexpr std::size_t kTableBytes =
    2u << 20;  // the range of one page table: the unit of scans for writes
inline constexpr std::size_t kTablePages = kTableBytes / kPageBytes;

struct MemoryOptions {
  std::uint64_t capacity_bytes = 0;  // multiple of kPageBytes
  std::uint64_t size_bytes = 0;      // multiple of kPageBytes
  bool writable = false;
  std::uint64_t wanted_address = 0;      // 0: anywhere
  bool address_required = false;         // otherwise only preferred
  bool over_reservation = false;         // maps over the caller's reservation and leaves one behind
  std::uint64_t memory_limit_bytes = 0;  // 0: shares the limit of the process
  std::string spill_directory;           // empty: dirty pages stay in memory, whatever the limit
  std::size_t chunk_bytes =
      kDefaultChunkBytes;  // a power of two, kPageBytes..kMostChunkPages pages
  bool huge_pages = false;
  // Not for engine mapped: remember which pages are used, and bring in those of the last use.
  bool keeps_working_set = false;
  std::vector<format::PageRange> last_working_set;
  // Engine mapped: the file to map, and the last commit as the store has it.
  std::shared_ptr<store::ImageFile> image;
  std::function<std::shared_ptr<store::PageSource>()> open_committed;
};

class RegionMemory : public FaultTarget, public Pageable, public ReadAheadTarget {
 public:
  // `source` gives the committed content; null: all zero. Throws Errc::busy (address taken),
  // out_of_memory.
  static std::unique_ptr<RegionMemory> create(Engine engine, const MemoryOptions& options,
                                              std::shared_ptr<store::PageSource> source);
  ~RegionMemory() override;

  std::byte* data() const noexcept { return base_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_.load(std::memory_order_acquire); }
  std::uint64_t capacity_bytes() const noexcept { return options_.capacity_bytes; }
  bool writable() const noexcept { return options_.writable; }
  virtual Engine engine() const noexcept = 0;
  Backing& backing() noexcept { return backing_; }
  std::size_t chunk_of(PageNumber page) const noexcept { return page >> chunk_shift_; }
  std::size_t chunk_pages() const noexcept { return std::size_t{1} << chunk_shift_; }

  // Brings pages in. False: `failure` has the reason.
  virtual bool make_present(PageNumber first, std::size_t count,
                            store::ReadFailure& failure) noexcept;

  // Puts pages of a version into huge pages: all 2 MiB that lie wholly in the range, up to half
  // of the memory limit. Does nothing without MemoryOptions::huge_pages. Any thread.
  void make_huge(PageNumber first, std::size_t count);

  // See Region::advise(). Any thread.
  virtual void advise(PageNumber first, std::size_t count, Advice advice);

  // The chunks used since the opening, in order of arrival, also those that have left. Empty
  // without MemoryOptions::keeps_working_set. REQUIRES: the region is no longer in use.
  std::vector<format::PageRange> working_set();

  // Appends, ascending, the pages that may have been written since the last call and those in the
  // spill file, and arms them again. No write is lost: a concurrent write is reported now or next
  // time. A page may be reported that was not written. Throws Errc::poisoned when pages were lost
  // (see lose()).
  // With `known`, another tracker has found the written pages, ascending, and nothing is armed.
  void collect_dirty(std::vector<PageNumber>& out, const std::vector<PageNumber>* known = nullptr);
  // Drops private copies of pages that equal their committed content. REQUIRES: nobody stores to
  // them meanwhile.
  virtual void drop_copies(const std::vector<PageNumber>&) {}
  // Restores pages from their base copies, or from the source. REQUIRES: nobody else uses them
  // meanwhile.
  void discard(const std::vector<PageNumber>& pages);

  // Hooks for a commit of the pages that collect_dirty() gave, called in this order. The engines
  // over a memfd have their base copies at hand and do nothing.
  // Before encoding: makes the base copies of the pages right. An exception fails the commit.
  virtual void prepare_commit(std::span<const PageNumber>) {}
  // The commit is durable, or no page had changed.
  virtual void finish_commit(std::span<const PageNumber>) noexcept {}
  // The commit has failed, and the encoder has undone its work.
  virtual void abandon_commit(std::span<const PageNumber>) noexcept {}
  // A page as of the commit at hand, or nullptr when it is not in memory. REQUIRES: held, present.
  virtual const std::byte* base_copy_of(PageNumber page) const noexcept {
    return backing_.has_base_copy(page) ? backing_.base_copy(page) : nullptr;
  }
  // Sets the length that the next finish_commit() gives the plain file behind the region; none: as
  // long as the region. Only engine mapped has a file.
  virtual void set_file_bytes(std::optional<std::uint64_t>) noexcept {}
  // Lengthens the file at once if it is shorter. Call it before anything is touched up to there.
  virtual void extend_file(std::uint64_t) {}
  // Takes back uncommitted growth of the file, except the first `keep_bytes`.
  virtual void drop_file_growth(std::uint64_t) {}
  // How much of the region lies in the file now; the rest must not be touched.
  virtual std::uint64_t backed_bytes() const noexcept { return size_bytes(); }
  // The mapping outlives this object; the caller unmaps it.
  void leave_mapped() noexcept { left_mapped_ = true; }
  // No commit follows this version.
  virtual void note_closed(const format::Version&) noexcept {}

  // A held chunk is not evicted, and its base copies stay in place: hold it while looking at base
  // copies. Waits for an eviction in progress. Any context.
  void hold(PageNumber first, std::size_t count) noexcept;
  void release(PageNumber first, std::size_t count) noexcept;
  // Whether the page's chunk is present; if so, it stays present until release(). REQUIRES: held.
  bool is_present(PageNumber page) const noexcept {
    return kernel_pages_ || chunk(chunk_of(page)).state.load(std::memory_order_acquire) == kPresent;
  }

  // For a commit, of a page that is not present: reads its spill file entry and notes that it is
  // taken. False: the page has no entry and is as committed, or it has come in meanwhile (see
  // is_present). Throws Errc::io, corrupted. REQUIRES: held; `buffer` aligned to 8.
  bool take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out);
  // The base copy of the page is becoming newer than the source. REQUIRES: held.
  void note_newer(PageNumber page) noexcept;
  // Reads a page from the source. Throws Errc::corrupted, io. REQUIRES: as for replace_source().
  void read_committed(PageNumber page, std::byte* out) const;
  // The page keeps its content whatever happens to its base copy. REQUIRES: held and present;
  // writable.
  void make_private(PageNumber page) noexcept;
  // The commit is durable and `source` reads it: the taken pages are now as committed. REQUIRES:
  // all base copies are as of that commit; nobody takes or notes meanwhile.
  void replace_source(std::shared_ptr<store::PageSource> source,
                      const std::vector<PageNumber>& taken);
  // The commit failed: the taken pages are as they were before it. Adds to `present` those that
  // have come in since: their base copies hold what the commit recorded and need to be put back.
  void give_back(const std::vector<PageNumber>& taken, std::vector<PageNumber>& present);
  // Whether so much cannot be evicted that replace_source() is due.
  bool wants_source() const noexcept;
  const std::shared_ptr<store::PageSource>& source() const noexcept { return source_.shared(); }
  // Makes room if there are too many pages. Call it after adding pages.
  void stay_within_limit() noexcept;

  // How many pages from `first` on, at most `limit`, are zero where nothing has ever come in.
  std::size_t untouched_zeros(PageNumber first, std::size_t limit) const noexcept;
  // Whether the page's chunk is not in memory, and all of it would come in as zeros.
  bool holds_nothing(PageNumber page) const noexcept;

  MemoryUse use() noexcept;  // counts
  bool has_spilled() const noexcept { return spill_ && spill_->pages() != 0; }

  // Pageable.
  std::size_t make_room(std::size_t pages) noexcept override;
  void measure() noexcept override;
  std::int64_t untold_pages() const noexcept override;
  void tidy() noexcept override;
  bool read_ahead_step() noexcept override;

  // While pinned, system calls may read and write the pages. REQUIRES: present.
  virtual void pin(PageNumber first, std::size_t count) = 0;
  virtual void unpin(PageNumber first, std::size_t count) noexcept = 0;

  // REQUIRES: within capacity. When the region grows, the new pages are zero. When it shrinks,
  // pages past the end are forgotten (after discard); REQUIRES: nobody else uses them.
  virtual void resize(std::uint64_t size_bytes);

  FaultResult on_fault(const Fault& fault) noexcept override;

 protected:
  RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source);

  // Engine hooks. All run in signal context, too. They return 0 or errno.
  // The signal with which a page asks to come in or to be opened for writing.
  virtual int fault_signal() const noexcept = 0;
  // Maps pages without a base copy. REQUIRES: none of them is in use: their chunks are being
  // filled, or discard() runs.
  virtual int map_zero(PageNumber first, std::size_t count) noexcept = 0;
  virtual int map_present(
      PageNumber first,
      std::size_t count) noexcept = 0;  // pages whose base copies were just written
  // Precedes the writing of base copies that stay unmapped until they are touched: reading them
  // must not count as writing. REQUIRES: nothing is mapped there.
  virtual int prepare_unmapped(PageNumber first, std::size_t count) noexcept;
  // Whether a page is mapped that no fault has reported. (A page that the kernel has swapped out
  // may not count.)
  virtual bool kernel_has_mapped(PageNumber first, std::size_t count) noexcept;
  // Opens a page that is not accessible although its chunk was present. If the chunk is claimed by
  // now, nothing is done, and the access faults again.
  virtual int resolve_present(PageNumber page, bool is_write) noexcept = 0;
  virtual void find_dirty(std::vector<PageNumber>& out) = 0;
  // Adds the pages that find_dirty() reports although nobody has written them. `out` is ascending
  // and keeps its pages.
  virtual void find_unfinished(std::vector<PageNumber>&) {}
  virtual void put_back(const std::vector<PageNumber>& pages) = 0;

  // For paging; engine mapped has no use for these.
  // Places a private copy of a page. REQUIRES: its chunk is claimed.
  virtual int place_private(PageNumber page, const std::byte* content) noexcept;
  // Private copies are placed and all else is mapped: the copies count as written from now on.
  virtual void note_placed(PageNumber first, std::uint64_t pages) noexcept;
  // Whether reading zero pages takes memory.
  virtual bool zeros_take_memory() const noexcept { return false; }
  // Which pages of a range are private, one bit per page. 0 or errno.
  virtual int find_own(PageNumber first, std::size_t count, std::uint64_t& mask) noexcept;
  // The state of one eviction. After freeze() nobody changes the pages.
  struct Frozen {
    PageNumber first = 0;
    std::size_t count = 0;
    std::uint64_t own = 0;  // private pages that may differ from their base copies, one bit each
    std::uint64_t base_copies = 0;     // pages that have base copies, one bit each
    const std::byte* pages = nullptr;  // where the private pages can be read
    std::byte* old = nullptr;          // copies of the base copies, chunk-sized
    std::byte* place = nullptr;        // address space for engines that move pages away
  };
  // 0, or errno with nothing changed. REQUIRES: the chunk is claimed.
  virtual int freeze(Frozen& frozen) noexcept;
  // Puts private pages back where `keep` says so; the others show their base copies.
  virtual int thaw(const Frozen& frozen, std::uint64_t keep) noexcept;
  // Forgets the whole chunk. 0, or errno with nothing changed.
  virtual int forget(const Frozen& frozen) noexcept;
  // Counts the private pages in [first, first + count). -1: not known.
  virtual std::int64_t count_own(PageNumber first, std::size_t count) noexcept;
  // Puts pages into memory: own content where `own` has a bit, base copies where `base_copies` has
  // one (written and noted), zero elsewhere. 0 or errno. REQUIRES: claimed, nothing is mapped
  // there.
  int show(PageNumber first, std::size_t count, const std::byte* base_copy_content,
           std::uint64_t base_copies, const std::byte* own_content, std::uint64_t own) noexcept;
  virtual int protect_beyond(std::uint64_t old_size, std::uint64_t new_size) noexcept = 0;
  // Protects the range for the first time, once it is mapped.
  virtual void start() = 0;
  // An engine's destructor calls this first: afterwards no fault and no pager reaches the object.
  void stop_service() noexcept;

  enum : std::uint32_t { kMissing = 0, kClaimed = 1, kPresent = 2 };
  struct Chunk {
    std::atomic<std::uint32_t> state;
    std::atomic<std::uint32_t> evicted_at;  // number of its last eviction; 0: never
    std::atomic<std::uint16_t> holds;
    std::atomic<std::uint8_t> heat;        // how many more times eviction passes it by
    std::atomic<std::uint8_t> newer;       // its base copies are newer than the source
    std::atomic<Advice> advice;            // normal, sequential or random
    std::atomic<std::uint8_t> prefetched;  // brought in by prefetch, not known to be touched since
  };
  Chunk& chunk(std::size_t index) const noexcept {
    return reinterpret_cast<Chunk*>(chunks_.data())[index];
  }
  std::size_t chunk_bytes() const noexcept { return chunk_pages() * kPageBytes; }
  std::size_t chunks_of(std::uint64_t size_bytes) const noexcept {
    return (size_bytes + chunk_bytes() - 1) / chunk_bytes();
  }
  bool chunk_missing(std::size_t index) const noexcept {
    return chunk(index).state.load(std::memory_order_acquire) == kMissing;
  }
  void wait_while_claimed(std::size_t index) const noexcept {
    chunk(index).state.wait(kClaimed, std::memory_order_acquire);
  }
  // Claims a chunk in state `from`. False: it is in another state.
  bool claim(std::size_t index, std::uint32_t from) noexcept {
    return chunk(index).state.compare_exchange_strong(from, kClaimed);
  }
  void settle(std::size_t index, std::size_t count, std::uint32_t state) noexcept;
  bool fill(std::size_t index, store::ReadFailure& failure) noexcept;
  void add_private(std::int64_t pages) noexcept {
    private_pages_.fetch_add(pages, std::memory_order_relaxed);
    pager_->add_pages(pages);
  }
  // Reads the committed content. REQUIRES: the chunk is claimed.
  bool read_source(PageNumber first, std::size_t pages, std::byte* out, bool& zero,
                   store::ReadFailure& failure) noexcept;
  void lose(const char* why) noexcept;
  void report(const store::ReadFailure& failure) const noexcept;
  std::atomic<std::uint64_t>& touched_word(std::size_t table) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(touched_.data())[table / 64];
  }

  const MemoryOptions options_;
  const unsigned chunk_shift_;  // log2 of the pages of a chunk
  const std::shared_ptr<Pager> pager_;
  std::atomic<std::uint64_t> size_bytes_;
  Backing backing_;
  std::byte* base_ = nullptr;
  bool left_mapped_ = false;
  // Engine mapped: the kernel pages in and out, so there are no chunks, no spill file and no limit.
  const bool kernel_pages_;

 private:
  struct Scratch;
  bool fill_zero(std::size_t index, std::size_t pages, store::ReadFailure& failure) noexcept;
  enum class Mapping { now, by_touch };  // by_touch: see memory_prefetch.cpp
  bool fill_from_source(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                        Mapping mapping = Mapping::now) noexcept;
  bool fill_with_spill(std::size_t index, std::size_t pages, std::uint64_t spilled,
                       store::ReadFailure& failure) noexcept;
  int open_cut_chunk(std::uint64_t old_size, std::uint64_t new_size) noexcept;
  void touch(PageNumber first, std::size_t count) noexcept;
  void note_arrival(std::size_t index, Mapping mapping = Mapping::now) noexcept;
  void map_range();
  void start_paging();

  // What evict() does when pages differ from what is committed. spilled: they go to the spill file
  // and the chunk leaves. stay: the chunk stays. all_stay: the chunk stays even when no page
  // differs.
  enum class Changed { spilled, stay, all_stay };
  std::size_t evict(std::size_t index, Changed changed = Changed::spilled) noexcept;
  std::size_t evict_claimed(std::size_t index, Changed changed) noexcept;
  bool spill_changed(const Frozen& frozen, std::byte* room, std::uint64_t& changed,
                     Changed what) noexcept;
  std::size_t evict_first(std::size_t pages) noexcept;

  int make_table_huge(std::size_t table) noexcept;
  void join_read_ahead() noexcept;
  void drop_chunks(PageNumber first, std::size_t count);
  void want_chunks(PageNumber first, std::size_t count);
  bool next_wanted(std::size_t& index) noexcept;
  bool worth_reading_ahead(std::size_t index) const noexcept;
  std::size_t most_ahead() const noexcept;
  void read_ahead_of(std::size_t index) noexcept;
  bool make_room_ahead() noexcept;
  void make_working_set();
  bool prefetch_step() noexcept;
  void prefetch_beside(std::size_t index) noexcept;
  bool prefetch_chunk(std::size_t index) noexcept;
  std::size_t zeros_from(PageNumber first, std::size_t pages) const noexcept;
  bool is_unused(std::size_t index) noexcept;
  bool show_prefetched(std::size_t index, store::ReadFailure& failure) noexcept;
  class NoReadAhead;  // while it lives
  void move_spilled(PageNumber page) noexcept;
  void settle_taken(const std::vector<PageNumber>& taken, bool durable,
                    std::vector<PageNumber>& present);
  class NoEvictions;  // while it lives

  static constexpr std::size_t kScratches = 8;
  Scratch& lock_scratch(std::size_t start) noexcept;
  LiveSource source_;
  base::Reservation chunks_;              // one Chunk each
  base::Reservation touched_;             // one bit per table: a chunk of it has been present
  std::unique_ptr<Scratch[]> scratches_;  // null: kernel_pages_

  std::atomic<ReadAhead*> read_ahead_{nullptr};  // null: this region has not joined it
  std::atomic<std::uint32_t> reading_ahead_{0}, read_ahead_stopped_{0};
  ReadStreams streams_;
  LeaveFirst leave_first_;
  std::mutex wanted_mutex_;  // guards wanted_, and joining
  std::deque<ReadStreams::Window> wanted_;
  std::unique_ptr<WorkingSet> working_set_;  // null: not wanted

  std::mutex huge_mutex_;       // guards huge_
  std::set<std::size_t> huge_;  // numbers of tables, whose chunks are held

  bool joined_ = false;               // the pager knows this region
  std::unique_ptr<SpillFile> spill_;  // null: read-only, or no place for it
  std::atomic<std::int64_t> private_pages_{0};
  std::atomic<std::size_t> hand_{0};  // the chunk to look at next
  std::atomic<std::uint32_t> evictions_{0}, present_chunks_{0}, newer_chunks_{0};
  std::atomic<std::uint32_t> evicting_{0}, evictions_stopped_{0};
  std::atomic<std::int64_t> spill_retry_ns_{0};  // it was full: no retry before this time
  std::int64_t tidied_ns_ = 0;                   // the pager's thread only
  std::mutex measuring_;
  std::atomic<const char*> lost_{nullptr};
};

// The address of a branch's region at its first opening: far from where the loader and malloc place
// things, so it is likely to be free the next time, too.
std::uint64_t far_address(std::uint64_t branch_id) noexcept;

// Resolves `wanted` for this machine; mapped counts as automatic where the region is not writable.
// Prints the one-line notice when automatic falls back.
Engine choose_engine(Engine wanted, bool writable);

}  // namespace vellum::region
