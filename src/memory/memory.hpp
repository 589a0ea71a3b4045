// memory/memory.hpp: the memory of a region, as Region, its commits and the encoder see it.
//
// A region's memory is a private mapping of a file that holds base copies: the content of each page
// at the last commit (memory/copies/backing.hpp). A store of the program creates a private copy of
// the page; a commit compares the two and then updates the base copy to the recorded content.
//
// Two kinds of memory implement this:
//  - PagedMemory (memory/paged/paged_memory.hpp), for engines uffd and sigsegv: the file is a
//    memfd. Faults fill pages from a page source, and pages are evicted when memory is short; dirty
//    pages are then kept in a spill file for the next commit.
//  - FileMemory (memory/engine/file_memory.hpp), for engine mapped: the file is a plain file, and
//    the kernel fills pages. All pages are present, and none is ever spilled.
//
// Threads: a call marked "any thread" may run concurrently with all others. The calls of a commit
// (from collect_dirty() on), discard() and resize() run one at a time; the encoder's own threads
// are the exception, as noted there.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>
#include <vellum/region.hpp>

#include "format/working_set.hpp"
#include "memory/address_range.hpp"
#include "memory/copies/backing.hpp"
#include "memory/copies/spill_file.hpp"
#include "memory/file_behind.hpp"
#include "memory/options.hpp"
#include "memory/paging/live_source.hpp"
#include "memory/paging/sizes.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::region {

class RegionMemory {
 public:
  virtual ~RegionMemory() = default;
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  std::byte* data() const noexcept { return range_.data(); }
  std::uint64_t size_bytes() const noexcept { return size_bytes_.load(std::memory_order_acquire); }
  std::uint64_t capacity_bytes() const noexcept { return range_.bytes(); }
  bool writable() const noexcept { return options_.writable; }
  virtual Engine engine() const noexcept = 0;
  // Whether a system call that touches an absent page waits for it.
  virtual bool serves_system_calls() const noexcept = 0;
  // Whether signal handlers fill pages, and must stay installed.
  virtual bool needs_handlers() const noexcept = 0;
  // Whether Counters has the number of dirty pages, which the kernel then does not know.
  virtual bool counts_dirty() const noexcept { return false; }
  // The plain file that holds the last commit; null: the region has none.
  virtual FileBehind* file_behind() noexcept = 0;
  // The source of committed content; null: all zero. REQUIRES: as for replace_source().
  const std::shared_ptr<store::PageSource>& source() const noexcept { return source_.shared(); }
  virtual MemoryUse use() noexcept = 0;

  // Pages in memory. Any thread.

  // Fills and maps pages. False: `failure` has the reason.
  virtual bool make_present(PageNumber first, std::size_t count,
                            store::ReadFailure& failure) noexcept = 0;
  // The same for several ranges. All pieces that they need from a remote are requested at once.
  virtual bool make_present(std::span<const format::PageRange> ranges,
                            store::ReadFailure& failure) = 0;
  // Combines pages of a version into huge pages: each 2 MiB that is wholly in the range, as long as
  // the pager permits it (try_keep). Nothing without MemoryOptions::huge_pages.
  virtual void make_huge(PageNumber first, std::size_t count) = 0;
  // See Region::advise().
  virtual void advise(PageNumber first, std::size_t count, Advice advice) = 0;
  // While pinned, system calls may read and write the pages. REQUIRES: present.
  virtual void pin(PageNumber first, std::size_t count) = 0;
  virtual void unpin(PageNumber first, std::size_t count) noexcept = 0;
  // How many pages from `first` on, at most `limit`, are zero and were never filled.
  virtual std::size_t untouched_zeros(PageNumber first, std::size_t limit) const noexcept = 0;
  // Whether the page's chunk is missing, and all of it would be filled with zeros.
  virtual bool holds_nothing(PageNumber page) const noexcept = 0;

  // Pages are held by chunks. A held chunk is not evicted, and its base copies stay in place: hold
  // it while reading base copies. Any context. REQUIRES: count != 0, within capacity.
  std::size_t chunk_pages() const noexcept { return std::size_t{1} << chunk_shift_; }
  std::size_t chunk_of(PageNumber page) const noexcept { return page >> chunk_shift_; }
  virtual void hold(PageNumber first, std::size_t count) noexcept = 0;
  virtual void release(PageNumber first, std::size_t count) noexcept = 0;
  // Whether the page is in memory; if so, it stays there until release(). REQUIRES: held.
  virtual bool is_present(PageNumber page) const noexcept = 0;

  // Commit and rollback.

  // Appends, ascending, the pages that may have been written since the last call and those in the
  // spill file, and arms them again. No write is lost: a concurrent write is reported by this call
  // or the next one. A page may be reported that was not written. Throws Errc::io; Errc::poisoned
  // when pages were lost. With `known`, another tracker has found the dirty pages, ascending, and
  // nothing is armed.
  virtual void collect_dirty(std::vector<PageNumber>& out,
                             const std::vector<PageNumber>* known = nullptr) = 0;
  // Restores pages from their base copies, or from the source. REQUIRES: no other thread
  // uses them meanwhile.
  virtual void discard(const std::vector<PageNumber>& pages) = 0;
  Backing& backing() noexcept { return *base_copies_; }
  // A page as of the current commit; null: it is zero, or not in memory. REQUIRES: held, present.
  virtual const std::byte* base_copy_of(PageNumber page) const noexcept = 0;
  // Whether a page without a base copy is bare: dirty, and its content of the last commit is not in
  // memory. REQUIRES: held, present.
  virtual bool is_bare(PageNumber) const noexcept { return false; }
  // The base copy of the page becomes newer than the source. REQUIRES: held. The encoder's
  // threads.
  virtual void note_newer(PageNumber page) noexcept = 0;
  // The page keeps its content whatever happens to its base copy. REQUIRES: held and present;
  // writable.
  void make_private(PageNumber page) noexcept;
  // Makes room if more pages are in memory than the limit permits. Call it after adding pages. The
  // encoder's threads.
  virtual void stay_within_limit() noexcept = 0;

  // Dirty pages that were evicted: a commit takes them from the spill file.

  // Any thread.
  virtual bool has_spilled() const noexcept = 0;
  // Of a page that is not present: reads its spill file entry and notes that it is taken. False:
  // the page has no entry and is as committed, or it was filled meanwhile (see is_present).
  // Throws Errc::io, corrupted. REQUIRES: held; `buffer` aligned to 8. The encoder's threads.
  virtual bool take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) = 0;
  // Reads a page from the source. Throws Errc::corrupted, io. REQUIRES: as for replace_source().
  void read_committed(PageNumber page, std::byte* out) const;
  // Whether so many pages cannot be evicted that replace_source() is due.
  virtual bool wants_source() const noexcept = 0;
  // The commit is durable and `source` reads it: the taken pages are now as committed. REQUIRES:
  // all base copies are as of that commit; no thread calls take_spilled() or note_newer()
  // meanwhile.
  virtual void replace_source(std::shared_ptr<store::PageSource> source,
                              const std::vector<PageNumber>& taken) = 0;
  // Between these, a commit finds, encodes and writes pages, and threads that fill others wait for
  // room.
  virtual void begin_committing() noexcept {}
  virtual void end_committing() noexcept {}
  // The commit is durable and base copies have its content: background work of the memory may
  // start.
  virtual void note_commit_end() noexcept = 0;
  // The commit failed: the taken pages are as they were before it. Adds to `present` those that
  // were filled since: their base copies have the content that the commit recorded and must be
  // restored.
  virtual void give_back(const std::vector<PageNumber>& taken,
                         std::vector<PageNumber>& present) = 0;

  // REQUIRES: within capacity. When the region grows, the new pages are zero. When it shrinks,
  // pages beyond the end are forgotten (after discard); REQUIRES: no other thread uses them.
  virtual void resize(std::uint64_t size_bytes) = 0;
  // The chunks used since the opening, in the order of their first fill, evicted ones included.
  // Empty without MemoryOptions::keeps_working_set. REQUIRES: the region is no longer in use.
  virtual std::vector<format::PageRange> working_set() = 0;

 protected:
  // Maps the range over the file of base copies, without access. Throws Errc::busy (address taken),
  // out_of_memory, io.
  RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
               std::shared_ptr<Backing> base_copies);

  std::byte* address_of(PageNumber page) const noexcept {
    assert(page * kPageBytes <= capacity_bytes());
    return data() + page * kPageBytes;
  }
  bool contains(const std::byte* address) const noexcept {
    return address >= data() && address < data() + size_bytes();
  }
  // Prints one line on standard error. Any context.
  void report(const store::ReadFailure& failure) const noexcept;

  const MemoryOptions options_;
  const unsigned chunk_shift_;  // log2 of the pages of a chunk
  std::atomic<std::uint64_t> size_bytes_;
  const std::shared_ptr<Backing> base_copies_;
  LiveSource source_;
  AddressRange range_;  // last, so it is unmapped first
};

}  // namespace vellum::region
