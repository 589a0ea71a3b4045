// memory/memory.hpp: the memory of a region, as Region, its commits and the encoder see it.
//
// A region's memory is a private mapping of a file that holds base copies: what each page was at
// the last commit (memory/copies/backing.hpp). A store of the program gives it a copy of the page
// of its own; a commit compares the two and then brings the base copy up to what it has recorded.
//
// Two kinds of memory implement this:
//  - PagedMemory (paged_memory.hpp), for engines uffd and sigsegv: the file is a memfd. Pages come
//    in from a page source by faults, and leave when memory is short; written pages then wait in a
//    spill file for the next commit.
//  - FileMemory (memory/engine/file_memory.hpp), for engine mapped: the file is a plain file, and
//    the kernel brings pages in. All pages are present, and none is ever spilled.
//
// Threads: "any thread" says that a call may run beside all others. The calls of a commit (from
// collect_dirty() on), discard() and resize() take turns; the encoder's own threads are the
// exception, as noted there.
#pragma once

#include <atomic>
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
  // Whether pages come in by signals, whose handlers then matter.
  virtual bool needs_handlers() const noexcept = 0;
  // The plain file that holds the last commit; null: the region has none.
  virtual FileBehind* file_behind() noexcept = 0;
  // The source of committed content; null: all zero. REQUIRES: as for replace_source().
  const std::shared_ptr<store::PageSource>& source() const noexcept { return source_.shared(); }
  virtual MemoryUse use() noexcept = 0;

  // Pages in memory. Any thread.

  // Brings pages in. False: `failure` has the reason.
  virtual bool make_present(PageNumber first, std::size_t count,
                            store::ReadFailure& failure) noexcept = 0;
  // The same for several ranges. What they need of a version at a remote is asked for at once.
  virtual bool make_present(std::span<const format::PageRange> ranges,
                            store::ReadFailure& failure) = 0;
  // Puts pages of a version into huge pages: all 2 MiB that lie wholly in the range, as far as the
  // pager lets memory stay (try_keep). Only where MemoryOptions::huge_pages asks for it.
  virtual void make_huge(PageNumber first, std::size_t count) = 0;
  // See Region::advise().
  virtual void advise(PageNumber first, std::size_t count, Advice advice) = 0;
  // While pinned, system calls may read and write the pages. REQUIRES: present.
  virtual void pin(PageNumber first, std::size_t count) = 0;
  virtual void unpin(PageNumber first, std::size_t count) noexcept = 0;
  // How many pages from `first` on, at most `limit`, are zero where nothing has ever come in.
  virtual std::size_t untouched_zeros(PageNumber first, std::size_t limit) const noexcept = 0;
  // Whether the page's chunk is not in memory, and all of it would come in as zeros.
  virtual bool holds_nothing(PageNumber page) const noexcept = 0;

  // Pages are held by chunks. A held chunk does not leave memory, and its base copies stay in
  // place: hold it while looking at base copies. Any context.
  std::size_t chunk_pages() const noexcept { return std::size_t{1} << chunk_shift_; }
  std::size_t chunk_of(PageNumber page) const noexcept { return page >> chunk_shift_; }
  virtual void hold(PageNumber first, std::size_t count) noexcept = 0;
  virtual void release(PageNumber first, std::size_t count) noexcept = 0;
  // Whether the page is in memory; if so, it stays there until release(). REQUIRES: held.
  virtual bool is_present(PageNumber page) const noexcept = 0;

  // Commit and rollback.

  // Appends, ascending, the pages that may have been written since the last call and those in the
  // spill file, and arms them again. No write is lost: a concurrent write is reported now or next
  // time. A page may be reported that was not written. Throws Errc::io; Errc::poisoned when pages
  // were lost.
  // With `known`, another tracker has found the written pages, ascending, and nothing is armed.
  virtual void collect_dirty(std::vector<PageNumber>& out,
                             const std::vector<PageNumber>* known = nullptr) = 0;
  // Restores pages from their base copies, or from the source. REQUIRES: nobody else uses them
  // meanwhile.
  virtual void discard(const std::vector<PageNumber>& pages) = 0;
  Backing& backing() noexcept { return *base_copies_; }
  // A page as of the commit at hand; null: it is zero, or not in memory. REQUIRES: held, present.
  virtual const std::byte* base_copy_of(PageNumber page) const noexcept = 0;
  // Whether a page without a base copy is bare: written, and what it was in the last commit is not
  // in memory. REQUIRES: held, present.
  virtual bool is_bare(PageNumber) const noexcept { return false; }
  // The base copy of the page is becoming newer than the source. REQUIRES: held. The encoder's
  // threads.
  virtual void note_newer(PageNumber page) noexcept = 0;
  // The page keeps its content whatever happens to its base copy. REQUIRES: held and present;
  // writable.
  void make_private(PageNumber page) noexcept;
  // Makes room if there are too many pages. Call it after adding pages. The encoder's threads.
  virtual void stay_within_limit() noexcept = 0;

  // Written pages that memory had no room for: a commit takes them from the spill file.

  // Any thread.
  virtual bool has_spilled() const noexcept = 0;
  // Of a page that is not present: reads its spill file entry and notes that it is taken. False:
  // the page has no entry and is as committed, or it has come in meanwhile (see is_present).
  // Throws Errc::io, corrupted. REQUIRES: held; `buffer` aligned to 8. The encoder's threads.
  virtual bool take_spilled(PageNumber page, std::byte* buffer, SpillFile::Entry& out) = 0;
  // Reads a page from the source. Throws Errc::corrupted, io. REQUIRES: as for replace_source().
  void read_committed(PageNumber page, std::byte* out) const;
  // Whether so much cannot leave memory that replace_source() is due.
  virtual bool wants_source() const noexcept = 0;
  // The commit is durable and `source` reads it: the taken pages are now as committed. REQUIRES:
  // all base copies are as of that commit; nobody takes or notes meanwhile.
  virtual void replace_source(std::shared_ptr<store::PageSource> source,
                              const std::vector<PageNumber>& taken) = 0;
  // Between these, a commit finds, encodes and writes pages, and threads that bring others in wait
  // for room.
  virtual void begin_committing() noexcept {}
  virtual void end_committing() noexcept {}
  // The commit is durable and base copies hold it; what memory does afterwards may begin.
  virtual void note_commit_end() noexcept = 0;
  // The commit failed: the taken pages are as they were before it. Adds to `present` those that
  // have come in since: their base copies hold what the commit recorded and need to be put back.
  virtual void give_back(const std::vector<PageNumber>& taken,
                         std::vector<PageNumber>& present) = 0;

  // REQUIRES: within capacity. When the region grows, the new pages are zero. When it shrinks,
  // pages past the end are forgotten (after discard); REQUIRES: nobody else uses them.
  virtual void resize(std::uint64_t size_bytes) = 0;
  // The chunks used since the opening, in order of arrival, also those that have left. Empty
  // unless MemoryOptions::keeps_working_set asks for it. REQUIRES: the region is no longer in use.
  virtual std::vector<format::PageRange> working_set() = 0;

 protected:
  // Maps the range over the file of base copies, without access. Throws Errc::busy (address taken),
  // out_of_memory, io.
  RegionMemory(const MemoryOptions& options, std::shared_ptr<store::PageSource> source,
               std::shared_ptr<Backing> base_copies);

  std::byte* address_of(PageNumber page) const noexcept { return data() + page * kPageBytes; }
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
