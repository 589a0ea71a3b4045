// memory/engine/write_log.hpp: which pages may have been written, where the kernel reports each
// first write to an armed page as a fault (Tracking::synchronous).
//
// Each page of a region is armed, or noted here, or not mapped and without a base copy that the
// kernel would map. Whoever disarms a page, or places one that is not armed, notes it; take() arms
// the noted pages and forgets them. Each does both under the lock of the page's table (2 MiB), as
// whose holder no page is armed or disarmed by others. Therefore no write is lost:
//
//  - A thread that writes without a fault found the page disarmed, so it is noted. take() arms it
//    before it releases the lock, and the kernel removes the page from the processors' caches
//    before the call returns: later writes fault. Earlier ones are in the page when the caller
//    compares it.
//  - A fault whose open() comes before take() is reported by it, also when its store comes later:
//    the page is armed again by then, and the store faults once more.
//  - A fault whose open() comes after take() notes the page for the next one. Its store comes later
//    still.
//
// A page may be noted and armed, or noted and not written: it is reported, compared and skipped.
// The kernel keeps the protection of a page that it unmaps by itself.
//
// Signal context: all of it, except take(). Any number of threads; one take() at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/memory/reserve.hpp"
#include "base/threads/handler_lock.hpp"
#include "format/working_set.hpp"
#include "memory/paging/sizes.hpp"
#include "memory/statistics/counters.hpp"

namespace vellum::region {

class WriteLog {
 public:
  // Of pages from `base` on, which `uffd` has registered with write protection. No page is noted.
  // Throws Errc::out_of_memory.
  WriteLog(int uffd, std::byte* base, std::uint64_t capacity_bytes, std::size_t chunk_pages,
           Counters& counters);

  // For a write that has faulted: notes the page and disarms it; also the rest of its chunk where
  // the two pages before are noted, so that a program that writes in order faults once in a chunk.
  // False: the page was noted, so it may be missing. `error`: 0 or errno.
  bool open(PageNumber page, int& error) noexcept;
  // Notes pages that become accessible without being armed. REQUIRES: no page is mapped there, and
  // none will be before the call returns.
  void note(PageNumber first, std::size_t count) noexcept;
  // Places pages that are not armed, by place(first, count) for the part in each table. 0 or errno.
  template <typename Place>
  int place(PageNumber first, std::size_t count, Place place) noexcept;
  // REQUIRES: no page is mapped there.
  void forget(PageNumber first, std::size_t count) noexcept;
  bool is_any_noted(PageNumber first, std::size_t count) const noexcept;

  // The chunks of pinned pages stay noted and disarmed. Pins add up. 0 or errno.
  int pin(PageNumber first, std::size_t count) noexcept;
  // Disarms pinned pages that were mapped armed. 0 or errno.
  int open_pinned(PageNumber first, std::size_t count) noexcept;
  void unpin(PageNumber first, std::size_t count) noexcept;

  // Appends, ascending, the noted pages before `end`, arms them and forgets them.
  void take(PageNumber end, std::vector<format::PageRange>& out);

 private:
  static constexpr std::size_t kWordPages = 64, kTableWords = kTablePages / kWordPages;
  static constexpr std::size_t kLocks = 64;
  struct Taken {  // of one table
    std::uint64_t noted[kTableWords];
    std::uint64_t kept[kTableWords];  // those that stay noted
  };

  static std::atomic<std::uint64_t>& word_of(const base::Reservation& bits,
                                             std::uint64_t index) noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(bits.data())[index / kWordPages];
  }
  std::atomic<std::uint16_t>& pins(std::size_t chunk) const noexcept {
    return reinterpret_cast<std::atomic<std::uint16_t>*>(pins_.data())[chunk];
  }
  base::HandlerLock& lock_of(PageNumber page) noexcept {
    return locks_[page / kTablePages % kLocks];
  }
  std::byte* address_of(PageNumber page) const noexcept { return base_ + page * kPageBytes; }
  std::uint64_t noted_of(PageNumber first, std::size_t count) const noexcept;
  bool is_noted(PageNumber page) const noexcept { return noted_of(page, 1) != 0; }
  void note_in_table(PageNumber first, std::size_t count) noexcept;
  int disarm_in_table(PageNumber first, std::size_t count) noexcept;
  void take_table(PageNumber first, PageNumber end, Taken& out) noexcept;
  void keep_pinned(PageNumber first, Taken& taken) const noexcept;
  void arm_taken(PageNumber first, Taken& taken) noexcept;

  const int uffd_;
  std::byte* const base_;
  const PageNumber end_;  // the capacity may cut the last chunk; memory behind is not ours
  const std::size_t chunk_pages_;
  Counters& counters_;
  base::Reservation noted_;    // one bit per page
  base::Reservation summary_;  // one bit per table: a page of it is noted
  base::Reservation pins_;     // one 16-bit count per chunk
  base::HandlerLock locks_[kLocks];
};

template <typename Place>
int WriteLog::place(PageNumber first, std::size_t count, Place place) noexcept {
  for (const PageNumber end = first + count; first < end;) {
    const auto n = std::min<std::size_t>(end - first, kTablePages - first % kTablePages);
    const std::lock_guard lock(lock_of(first));
    note_in_table(first, n);  // also those of a call that fails in the middle
    if (const int error = place(first, n); error != 0) return error;
    first += n;
  }
  return 0;
}

}  // namespace vellum::region
