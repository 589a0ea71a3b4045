// memory/copies/spill_file.hpp: dirty pages that were evicted.
//
// A record has a page's difference from its committed content, or the whole page where that is not
// much larger: a few changed words cost a few bytes, not a page. Records are appended to segments
// of an unnamed file; a segment without live records is reused. The file does not survive the
// process: uncommitted pages are not durable.
//
// Ownership: the thread that has claimed a page's chunk (memory/paging/chunk_table.hpp) calls
// put(), read() and drop() for the page, so none of them runs concurrently with another for the
// same page.
//
// All but the constructor, append_pages(), pages_to_move() and tidy() may run in the fault handler.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files/scratch_file.hpp"
#include "base/memory/reserve.hpp"
#include "base/threads/handler_lock.hpp"
#include "format/records/delta.hpp"
#include "format/records/page_diff.hpp"
#include "format/wire/types.hpp"

namespace vellum::region {

class SpillFile {
 public:
  // Pages of one chunk that are spilled together. They are in the caller's memory, since the fault
  // handler allocates nothing.
  class Batch {
   public:
    static constexpr std::size_t kMaxPages = 64;
    static constexpr std::size_t kRecordBytes = 16 + format::kPageBytes;  // at most
    static constexpr std::size_t bytes(std::size_t pages) noexcept { return pages * kRecordBytes; }

    // REQUIRES: `room` has bytes(n) bytes for n added pages and is aligned to 8.
    explicit Batch(std::byte* room) noexcept : room_(room) {
      assert(reinterpret_cast<std::uintptr_t>(room) % 8 == 0);
    }
    // REQUIRES: fewer than kMaxPages so far. `now` is the whole page, `diff` its difference.
    void add(format::PageNumber page, const format::PageDiff& diff, const std::byte* now) noexcept;
    // The same without a difference: all of the page.
    void add_whole(format::PageNumber page, const std::byte* now) noexcept;
    bool empty() const noexcept { return count_ == 0; }
    std::size_t count() const noexcept { return count_; }

   private:
    friend class SpillFile;
    void finish(format::PageNumber page, std::uint32_t spans, std::size_t bytes) noexcept;
    struct BatchRecord {
      format::PageNumber page;
      std::uint32_t at_bytes, length_bytes;
    };
    std::byte* room_;
    std::size_t used_bytes_ = 0, count_ = 0;
    BatchRecord records_[kMaxPages];
  };

  // A page's content in the spill file, as views into the caller's buffer.
  struct Entry {
    bool whole = false;
    std::span<const format::DeltaSpan> spans;  // of a page that is not whole
    std::span<const std::byte> bytes;          // of the spans, or the page
    void apply_to(std::byte* page) const noexcept;
  };
  using Buffer = std::byte[Batch::kRecordBytes];

  // Adjacent records of several pages, in the caller's memory.
  class LoadedRecords {
    friend class SpillFile;
    std::uint64_t at_bytes_ = 0;
    std::span<std::byte> bytes_;
  };

  // `directory`: of the file. Throws Errc::not_found, no_space, io, out_of_memory.
  SpillFile(const std::string& directory, std::uint64_t capacity_pages);

  // 0, or errno with nothing written. REQUIRES: the spill file holds none of the pages.
  int put(const Batch& batch) noexcept;
  bool holds(format::PageNumber page) const noexcept { return word(page).load() != 0; }
  // Which of these pages the spill file holds: one bit per page. REQUIRES: count <= 64.
  std::uint64_t held_in(format::PageNumber first, std::size_t count) const noexcept;
  // Which of them it holds as whole pages.
  std::uint64_t whole_in(format::PageNumber first, std::size_t count) const noexcept;
  // 0 or errno (EBADMSG: not what was written). REQUIRES: holds(page); `buffer` aligned to 8.
  int read(format::PageNumber page, std::byte* buffer, Entry& out) const noexcept;
  // Reads the records that read() needs next in one call: those of `pages` (one bit per page from
  // `first` on), if they are adjacent, as those of a batch are. Otherwise, and on failure, loads
  // nothing. REQUIRES: the spill file holds them; `room` has Batch::bytes() for as many, aligned to
  // 8.
  LoadedRecords load(format::PageNumber first, std::uint64_t pages, std::byte* room) const noexcept;
  int read(const LoadedRecords& loaded, format::PageNumber page, std::byte* buffer,
           Entry& out) const noexcept;
  // Starts to read the records of up to 64 pages from the disk. Their owner may be another thread.
  void will_load(format::PageNumber first, std::size_t count) const noexcept;
  void drop(format::PageNumber page) noexcept;
  // Moves a page's record, so that its segment can be reused sooner. A failure does no harm.
  void move(format::PageNumber page, std::byte* buffer) noexcept;

  // A commit has read the page: the entry stays until the commit is durable. By then the page
  // differs no more.
  void set_taken(format::PageNumber page, bool taken) noexcept;
  bool is_taken(format::PageNumber page) const noexcept {
    return (word(page).load() & kTaken) != 0;
  }

  std::uint64_t pages() const noexcept { return pages_.load(std::memory_order_relaxed); }
  std::uint64_t file_bytes() const noexcept { return file_.allocated_bytes(); }
  // How many bytes were written so far.
  std::uint64_t put_bytes() const noexcept { return put_bytes_.load(std::memory_order_relaxed); }
  // Appends all pages that the spill file holds, ascending.
  void append_pages(std::vector<format::PageNumber>& out) const;

  // Frees unused segments in the file system.
  void tidy() noexcept;
  // When dead records take more space than live ones: the pages of a segment to move(), so that it
  // can be reused. Otherwise none.
  std::vector<format::PageNumber> pages_to_move();

 private:
  static constexpr std::uint64_t kSegmentBytes = 4u << 20;
  // Flags of a page's word.
  static constexpr std::uint64_t kPresent = 1ULL << 63, kTaken = 1ULL << 62;
  static constexpr std::size_t kPagesPerCount = 512;

  std::atomic<std::uint64_t>& word(format::PageNumber page) const noexcept {
    assert(page < capacity_pages_);
    return reinterpret_cast<std::atomic<std::uint64_t>*>(table_.data())[page];
  }
  std::atomic<std::uint32_t>& count_of(format::PageNumber page) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(counts_.data())[page / kPagesPerCount];
  }
  std::atomic<std::uint32_t>& live(std::uint64_t segment) const noexcept {
    assert(segment < segments_);
    return reinterpret_cast<std::atomic<std::uint32_t>*>(live_.data())[segment];
  }
  struct FileExtent {
    std::uint64_t at_bytes = 0, bytes = 0;
  };
  FileExtent extent_of(format::PageNumber first, std::uint64_t pages) const noexcept;
  bool reserve(std::size_t bytes, std::uint64_t& at_bytes) noexcept;

  const std::uint64_t capacity_pages_, segments_;
  base::ScratchFile file_;
  base::Reservation table_;   // one word per page: the position of its record
  base::Reservation counts_;  // pages held, for each kPagesPerCount
  base::Reservation live_;    // bytes in use, for each segment
  std::atomic<std::uint64_t> pages_{0}, put_bytes_{0};
  base::HandlerLock append_;  // guards the members below
  std::uint64_t open_segment_ = 0, open_used_bytes_ = 0;
  std::uint64_t segments_used_ = 1;  // high-water mark, since the last tidy()
};

}  // namespace vellum::region
