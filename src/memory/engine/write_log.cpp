#include "memory/engine/write_log.hpp"

#include <bit>
#include <cassert>
#include <span>

#include "memory/kernel/kernel.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

// Arming a gap of so many pages costs less than another call.
constexpr PageNumber kMaxGap = 16;

// Calls visit(first, count) for ranges of set bits, numbered from `first` on. Gaps of at most `gap`
// pages are part of a range.
template <typename Visit>
void for_each_range(PageNumber first, std::span<const std::uint64_t> words, PageNumber gap,
                    Visit visit) {
  PageNumber begin = 0, end = 0;  // of the current range
  for (std::size_t i = 0; i < words.size(); ++i) {
    for_each_bit_range(words[i], [&](std::size_t at, std::size_t n) {
      const PageNumber page = first + i * 64 + at;
      if (begin == end || page > end + gap) {
        if (begin != end) visit(begin, end - begin);
        begin = page;
      }
      end = page + n;
      return 0;
    });
  }
  if (begin != end) visit(begin, end - begin);
}

}  // namespace

WriteLog::WriteLog(int uffd, std::byte* base, std::uint64_t capacity_bytes, std::size_t chunk_pages,
                   Counters& counters)
    : uffd_(uffd),
      base_(base),
      end_(capacity_bytes / kPageBytes),
      chunk_pages_(chunk_pages),
      counters_(counters),
      noted_((capacity_bytes / kTableBytes + 1) * kTableWords * sizeof(std::uint64_t)),
      summary_((capacity_bytes / kTableBytes / 64 + 1) * sizeof(std::uint64_t)),
      pins_((capacity_bytes / kPageBytes / chunk_pages + 1) * sizeof(std::uint16_t)) {
  assert(uffd >= 0 && kWordPages % chunk_pages == 0);
}

std::uint64_t WriteLog::noted_of(PageNumber first, std::size_t count) const noexcept {
  assert(count != 0 && first % kWordPages + count <= kWordPages);
  return word_of(noted_, first).load(std::memory_order_relaxed) >> (first % kWordPages) &
         bits_below(count);
}

// REQUIRES: the table's lock is held.
void WriteLog::note_in_table(PageNumber first, std::size_t count) noexcept {
  assert(count != 0 && first / kTablePages == (first + count - 1) / kTablePages);
  std::size_t added = 0;
  for (PageNumber page = first; page < first + count;) {
    const auto n = std::min<std::size_t>(kWordPages - page % kWordPages, first + count - page);
    const std::uint64_t mask = bits_below(n) << (page % kWordPages);
    auto& word = word_of(noted_, page);
    const std::uint64_t old = word.load(std::memory_order_relaxed);
    word.store(old | mask, std::memory_order_relaxed);
    added += static_cast<std::size_t>(std::popcount(mask & ~old));
    page += n;
  }
  counters_.count_opened(first / kTablePages, added);
  const std::size_t table = first / kTablePages;
  word_of(summary_, table).fetch_or(1ULL << (table % 64), std::memory_order_release);
}

int WriteLog::disarm_in_table(PageNumber first, std::size_t count) noexcept {
  assert(first < end_);
  count = std::min<std::size_t>(count, end_ - first);
  note_in_table(first, count);
  return disarm(uffd_, address_of(first), count * kPageBytes);
}

bool WriteLog::open(PageNumber page, int& error) noexcept {
  const bool in_order = page >= 2 && is_noted(page - 1) && is_noted(page - 2);
  const std::size_t count = in_order ? chunk_pages_ - page % chunk_pages_ : 1;
  const std::lock_guard lock(lock_of(page));
  const bool was_noted = is_noted(page);
  error = disarm_in_table(page, count);
  return !was_noted;
}

void WriteLog::note(PageNumber first, std::size_t count) noexcept {
  place(first, count, [](PageNumber, std::size_t) { return 0; });
}

void WriteLog::forget(PageNumber first, std::size_t count) noexcept {
  assert(first % kWordPages + count <= kWordPages);
  const std::lock_guard lock(lock_of(first));
  const std::uint64_t noted = noted_of(first, count);
  auto& word = word_of(noted_, first);
  word.store(word.load(std::memory_order_relaxed) & ~(noted << (first % kWordPages)),
             std::memory_order_relaxed);
  counters_.count_closed(first / kTablePages, static_cast<std::size_t>(std::popcount(noted)));
}

bool WriteLog::is_any_noted(PageNumber first, std::size_t count) const noexcept {
  return noted_of(first, count) != 0;
}

int WriteLog::pin(PageNumber first, std::size_t count) noexcept {
  const std::size_t end = (first + count - 1) / chunk_pages_ + 1;
  for (std::size_t chunk = first / chunk_pages_; chunk < end; ++chunk) {
    const PageNumber page = chunk * chunk_pages_;
    const std::lock_guard lock(lock_of(page));
    pins(chunk).fetch_add(1, std::memory_order_relaxed);
    if (const int error = disarm_in_table(page, chunk_pages_); error != 0) {
      unpin(first, page + chunk_pages_ - first);  // this chunk, too
      return error;
    }
  }
  return 0;
}

int WriteLog::open_pinned(PageNumber first, std::size_t count) noexcept {
  const std::size_t end = (first + count - 1) / chunk_pages_ + 1;
  for (std::size_t chunk = first / chunk_pages_; chunk < end; ++chunk) {
    const PageNumber page = chunk * chunk_pages_;
    const std::lock_guard lock(lock_of(page));
    if (pins(chunk).load(std::memory_order_relaxed) == 0) continue;
    if (const int error = disarm_in_table(page, chunk_pages_); error != 0) return error;
  }
  return 0;
}

void WriteLog::unpin(PageNumber first, std::size_t count) noexcept {
  const std::size_t end = (first + count - 1) / chunk_pages_ + 1;
  for (std::size_t chunk = first / chunk_pages_; chunk < end; ++chunk) {
    [[maybe_unused]] const auto before = pins(chunk).fetch_sub(1, std::memory_order_relaxed);
    assert(before != 0);
  }
}

void WriteLog::take(PageNumber end, std::vector<format::PageRange>& out) {
  const std::uint64_t tables = (end + kTablePages - 1) / kTablePages;
  Taken taken;
  for (std::uint64_t at = 0; at < tables; at += 64) {
    std::uint64_t summary = word_of(summary_, at).exchange(0, std::memory_order_acq_rel);
    for (; summary != 0; summary &= summary - 1) {
      const std::uint64_t table = at + static_cast<std::uint64_t>(std::countr_zero(summary));
      take_table(table * kTablePages, end, taken);
      for_each_range(table * kTablePages, taken.noted, 0,
                     [&](PageNumber first, PageNumber n) { out.push_back({first, n}); });
    }
  }
}

// Pages beyond the end stay noted: the region may grow again.
void WriteLog::take_table(PageNumber first, PageNumber end, Taken& out) noexcept {
  const std::lock_guard lock(lock_of(first));
  std::size_t closed = 0;
  bool any_kept = false;
  std::uint64_t beyond[kTableWords];
  for (std::size_t i = 0; i < kTableWords; ++i) {
    const PageNumber page = first + i * kWordPages;
    const std::uint64_t noted = word_of(noted_, page).load(std::memory_order_relaxed);
    out.noted[i] = noted & bits_below(end > page ? end - page : 0);
    beyond[i] = noted & ~out.noted[i];
  }
  keep_pinned(first, out);
  arm_taken(first, out);
  for (std::size_t i = 0; i < kTableWords; ++i) {
    const std::uint64_t left = out.kept[i] | beyond[i];
    word_of(noted_, first + i * kWordPages).store(left, std::memory_order_relaxed);
    closed += static_cast<std::size_t>(std::popcount(out.noted[i] & ~out.kept[i]));
    any_kept = any_kept || left != 0;
  }
  counters_.count_closed(first / kTablePages, closed);
  const std::size_t table = first / kTablePages;
  if (any_kept) word_of(summary_, table).fetch_or(1ULL << (table % 64), std::memory_order_release);
}

void WriteLog::keep_pinned(PageNumber first, Taken& taken) const noexcept {
  for (std::size_t i = 0; i < kTableWords; ++i) {
    taken.kept[i] = 0;
    if (taken.noted[i] == 0) continue;
    for (std::size_t at = 0; at < kWordPages; at += chunk_pages_) {
      const std::size_t chunk = (first + i * kWordPages + at) / chunk_pages_;
      if (pins(chunk).load(std::memory_order_relaxed) == 0) continue;
      taken.kept[i] |= taken.noted[i] & bits_below(chunk_pages_) << at;
    }
  }
}

// A page that the kernel does not arm stays noted.
void WriteLog::arm_taken(PageNumber first, Taken& taken) noexcept {
  std::uint64_t wanted[kTableWords];
  bool any_kept = false;
  for (std::size_t i = 0; i < kTableWords; ++i) {
    wanted[i] = taken.noted[i] & ~taken.kept[i];
    any_kept = any_kept || taken.kept[i] != 0;
  }
  for_each_range(first, wanted, any_kept ? 0 : kMaxGap, [&](PageNumber page, PageNumber count) {
    if (arm(uffd_, address_of(page), count * kPageBytes) == 0) return;
    for (PageNumber p = page; p < page + count; ++p) {
      const std::size_t i = (p - first) / kWordPages;
      taken.kept[i] |= taken.noted[i] & 1ULL << (p % kWordPages);
    }
  });
}

}  // namespace vellum::region
