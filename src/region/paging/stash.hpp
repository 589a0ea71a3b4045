// region/paging/stash.hpp: dirty pages that memory had no room for.
//
// A page goes away as what it differs by from its committed content, or whole where that is not
// much more: a few changed words cost a few bytes, not a page. Records are appended to segments of
// a file without a name; a segment in which nothing lives any more is written again. Nothing here
// survives the process: what was not committed is not durable.
//
// Who owns a page's entry: put(), read() and drop() are called by whoever has claimed the page's
// chunk (region/memory/memory.hpp), so none of them runs beside another of the same page.
//
// All but the constructor, append_pages() and tidy() may run in the fault handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/handler_lock.hpp"
#include "base/reserve.hpp"
#include "base/scratch_file.hpp"
#include "format/delta.hpp"
#include "format/page_diff.hpp"
#include "format/types.hpp"

namespace vellum::region {

class Stash {
 public:
  // Pages of one chunk, to be put away together. In memory of the caller's, as the fault handler
  // allocates nothing.
  class Batch {
   public:
    static constexpr std::size_t kMaxPages = 64;
    static constexpr std::size_t kRecordBytes = 16 + format::kPageBytes;  // at most
    static constexpr std::size_t bytes(std::size_t pages) noexcept { return pages * kRecordBytes; }

    // REQUIRES: room for what is added, aligned to 8.
    explicit Batch(std::byte* room) noexcept : room_(room) {}
    // REQUIRES: fewer than kMaxPages so far. `now` is the whole page, `diff` what it differs by.
    void add(format::PageNumber page, const format::PageDiff& diff, const std::byte* now) noexcept;
    bool empty() const noexcept { return count_ == 0; }
    std::size_t count() const noexcept { return count_; }

   private:
    friend class Stash;
    struct Record {
      format::PageNumber page;
      std::uint32_t at_bytes, length_bytes;
    };
    std::byte* room_;
    std::size_t used_bytes_ = 0, count_ = 0;
    Record records_[kMaxPages];
  };

  // What is known of a page. Views into the caller's buffer.
  struct Entry {
    bool whole = false;
    std::span<const format::DeltaRun> runs;  // of a page that is not whole
    std::span<const std::byte> bytes;        // of the runs, or the page
    void apply_to(std::byte* page) const noexcept;
  };
  using Buffer = std::byte[Batch::kRecordBytes];

  // Records of several pages, as they lie in the file. In the caller's memory.
  class Loaded {
    friend class Stash;
    std::uint64_t at_bytes_ = 0;
    std::span<std::byte> bytes_;
  };

  // `directory`: where the file goes. Throws Errc::not_found, no_space, io, out_of_memory.
  Stash(const std::string& directory, std::uint64_t capacity_pages);

  // 0 or errno: nothing was put then. REQUIRES: none of the pages is here.
  int put(const Batch& batch) noexcept;
  bool holds(format::PageNumber page) const noexcept { return word(page).load() != 0; }
  // A bit a page, of up to 64.
  std::uint64_t held_in(format::PageNumber first, std::size_t count) const noexcept;
  // 0 or errno (EBADMSG: not what was written). REQUIRES: holds(page); `buffer` aligned to 8.
  int read(format::PageNumber page, std::byte* buffer, Entry& out) const noexcept;
  // Reads at once what read() is about to look at: the records of these pages (a bit a page from
  // `first` on), if they lie together, as those of a batch do. Otherwise, and when it fails,
  // nothing. REQUIRES: they are here; `room` has Batch::bytes() of as many,
  // aligned to 8.
  Loaded load(format::PageNumber first, std::uint64_t pages, std::byte* room) const noexcept;
  int read(const Loaded& loaded, format::PageNumber page, std::byte* buffer,
           Entry& out) const noexcept;
  void drop(format::PageNumber page) noexcept;
  // To another place, so that its segment gets free sooner. No harm when it fails.
  void move(format::PageNumber page, std::byte* buffer) noexcept;

  // A commit has read the page: the entry stays until that is durable, and is by then no longer
  // what makes the page differ.
  void set_taken(format::PageNumber page, bool taken) noexcept;
  bool is_taken(format::PageNumber page) const noexcept {
    return (word(page).load() & kTaken) != 0;
  }

  std::uint64_t pages() const noexcept { return pages_.load(std::memory_order_relaxed); }
  std::uint64_t file_bytes() const noexcept { return file_.allocated_bytes(); }
  // How many were ever put, and in how many bytes.
  std::uint64_t put_bytes() const noexcept { return put_bytes_.load(std::memory_order_relaxed); }
  // All pages that are here, ascending.
  void append_pages(std::vector<format::PageNumber>& out) const;

  // Gives unused segments back to the file system.
  void tidy() noexcept;
  // When dead records take more than live ones, the pages of a segment that should be put anew
  // (read, drop, put), so that it can be used again; otherwise none.
  std::vector<format::PageNumber> pages_to_move();

 private:
  static constexpr std::uint64_t kSegmentBytes = 4u << 20;
  static constexpr std::uint64_t kPresent = 1ULL << 63, kTaken = 1ULL << 62;
  static constexpr std::size_t kPagesPerCount = 512;

  std::atomic<std::uint64_t>& word(format::PageNumber page) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(table_.data())[page];
  }
  std::atomic<std::uint32_t>& count_of(format::PageNumber page) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(counts_.data())[page / kPagesPerCount];
  }
  std::atomic<std::uint32_t>& live(std::uint64_t segment) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(live_.data())[segment];
  }
  bool reserve(std::size_t bytes, std::uint64_t& at_bytes) noexcept;

  const std::uint64_t capacity_pages_, segments_;
  base::ScratchFile file_;
  base::Reservation table_;   // a word a page: where its record is
  base::Reservation counts_;  // pages here, for each kPagesPerCount
  base::Reservation live_;    // bytes in use, for each segment
  std::atomic<std::uint64_t> pages_{0}, put_bytes_{0};
  base::HandlerLock append_;  // of what follows
  std::uint64_t open_segment_ = 0, open_used_bytes_ = 0;
  std::uint64_t segments_used_ = 1;  // high-water mark, since the last tidy()
};

}  // namespace vellum::region
