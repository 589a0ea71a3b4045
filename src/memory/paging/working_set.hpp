// memory/paging/working_set.hpp: the chunks of a region that are in use, in the order of their
// first fill, and the candidates for prefetch: those of the last use.
//
// Any context, any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/memory/reserve.hpp"
#include "base/threads/handler_lock.hpp"
#include "format/working_set.hpp"

namespace vellum::region {

class WorkingSet {
 public:
  // `wanted`: the pages of the last use, from an untrusted file. At most `most_chunks` chunks of
  // them are prefetched.
  WorkingSet(std::size_t capacity_chunks, std::vector<format::PageRange> wanted,
             std::size_t chunk_pages, std::size_t most_chunks)
      : numbers_(capacity_chunks * sizeof(std::uint32_t)),
        wanted_(std::move(wanted)),
        chunk_pages_(chunk_pages),
        left_(most_chunks) {
    assert(chunk_pages != 0);
  }

  // A chunk was filled; it counts once.
  void note(std::size_t index) noexcept {
    auto& number = number_at(index);
    if (number.load(std::memory_order_relaxed) != 0) return;
    number.store(next_number_.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
  }
  void forget(std::size_t index) noexcept { number_at(index).store(0, std::memory_order_relaxed); }
  // 0: it is not in use.
  std::uint32_t number_of(std::size_t index) const noexcept {
    return number_at(index).load(std::memory_order_relaxed);
  }

  bool has_candidates() const noexcept {
    const std::lock_guard guard(lock_);
    return left_ != 0 && range_ < wanted_.size();
  }
  // A chunk to prefetch, and the range that contains it.
  struct PrefetchCandidate {
    std::size_t index = 0, range = 0;
  };
  // Returns the next candidate of a region of `chunks` chunks, each once. False: none.
  bool next(std::size_t chunks, PrefetchCandidate& out) noexcept;
  // The candidate was not prefetched, so another one may be. The chunks of its range below `end`
  // are skipped, too.
  void skip(const PrefetchCandidate& skipped, std::size_t end = 0) noexcept {
    const std::lock_guard guard(lock_);
    ++left_;
    if (skipped.range == range_) at_ = std::max(at_, end);
  }
  void end() noexcept {
    const std::lock_guard guard(lock_);
    range_ = wanted_.size();
  }

 private:
  std::atomic<std::uint32_t>& number_at(std::size_t index) const noexcept {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(numbers_.data())[index];
  }

  base::Reservation numbers_;  // one per chunk: the order of first fills
  std::atomic<std::uint32_t> next_number_{1};
  const std::vector<format::PageRange> wanted_;
  const std::size_t chunk_pages_;
  mutable base::HandlerLock lock_;  // guards the members below
  std::size_t left_;                // chunks that may still be prefetched
  std::size_t range_ = 0;           // of wanted_
  std::size_t at_ = 0;              // the next candidate, if it is in that range
  std::size_t looked_ = 0;          // ranges may repeat: at most the region's chunks
};

inline bool WorkingSet::next(std::size_t chunks, PrefetchCandidate& out) noexcept {
  const std::lock_guard guard(lock_);
  while (left_ != 0 && range_ < wanted_.size() && looked_ < chunks) {
    const format::PageRange& range = wanted_[range_];
    const std::size_t first = range.first / chunk_pages_;
    const std::size_t end = (range.first + range.count - 1) / chunk_pages_ + 1;
    at_ = std::max(at_, first);
    if (at_ < std::min(end, chunks)) {
      out = {at_++, range_};
      ++looked_;
      --left_;
      return true;
    }
    ++range_;
    at_ = 0;
  }
  return false;
}

}  // namespace vellum::region
