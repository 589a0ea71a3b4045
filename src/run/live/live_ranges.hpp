// run/live/live_ranges.hpp: the address ranges of live files.
//
// An allocator unmaps and advises its own memory while it holds its locks. The check whether that
// memory is a live file's must not wait for a thread that holds FileStates::mutex() and allocates.
// This class therefore has its own lock, under which nothing allocates, and memory of fixed size.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/threads/handler_lock.hpp"

namespace vellum::preload {

class LiveRanges {
 public:
  static constexpr std::size_t kMax = 1U << 16;

  bool contains(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const std::lock_guard lock(lock_);
    const auto behind = std::upper_bound(ranges_.begin(), end(), at, before);
    return behind != ranges_.begin() && at < (behind - 1)->end;
  }
  // False: there are too many. REQUIRES: the range overlaps no other.
  bool add(const void* begin, std::size_t length_bytes) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const std::lock_guard lock(lock_);
    if (count_ == kMax) return false;
    const auto place = std::upper_bound(ranges_.begin(), end(), at, before);
    std::move_backward(place, end(), end() + 1);
    *place = {at, at + length_bytes};
    ++count_;
    return true;
  }
  void remove(const void* begin) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const std::lock_guard lock(lock_);
    const auto place = std::upper_bound(ranges_.begin(), end(), at, before);
    if (place == ranges_.begin() || (place - 1)->begin != at) return;
    std::move(place, end(), place - 1);
    --count_;
  }

  // For fork(2): the lock must be free in the child.
  void lock() noexcept { lock_.lock(); }
  void unlock() noexcept { lock_.unlock(); }

 private:
  struct LiveRange {
    std::uintptr_t begin, end;
  };
  static bool before(std::uintptr_t at, const LiveRange& range) noexcept {
    return at < range.begin;
  }
  std::array<LiveRange, kMax>::iterator end() noexcept {
    return ranges_.begin() + static_cast<std::ptrdiff_t>(count_);
  }

  base::HandlerLock lock_;
  std::size_t count_ = 0;
  std::array<LiveRange, kMax> ranges_{};  // ascending
};

}  // namespace vellum::preload
