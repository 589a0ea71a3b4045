// memory/paging/leave_first.hpp: chunks that are to leave memory before all others.
//
// It keeps a few ranges. When more are added, the oldest are forgotten, and their chunks wait for
// their turn like all others. Any context.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vellum::region {

class LeaveFirst {
 public:
  void add(std::size_t first, std::size_t count) noexcept {
    if (count == 0) return;
    ranges_[next_.fetch_add(1, std::memory_order_relaxed) % kRanges].store(
        pack(first, count), std::memory_order_relaxed);
  }
  // Gives each chunk once. False: none is left.
  bool take(std::size_t& index) noexcept {
    for (auto& range : ranges_) {
      std::uint64_t now = range.load(std::memory_order_relaxed);
      while (now != 0) {
        const std::size_t first = now >> 32, count = now & 0xffffffff;
        const std::uint64_t rest = count == 1 ? 0 : pack(first + 1, count - 1);
        if (!range.compare_exchange_weak(now, rest, std::memory_order_relaxed)) continue;
        index = first;
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::size_t kRanges = 16;
  // A region has at most 2^30 chunks.
  static std::uint64_t pack(std::size_t first, std::size_t count) noexcept {
    return std::uint64_t{first} << 32 | std::uint64_t{count};
  }
  std::atomic<std::uint64_t> ranges_[kRanges] = {};  // 0: free
  std::atomic<unsigned> next_{0};
};

}  // namespace vellum::region
