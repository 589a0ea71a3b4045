// memory/paging/eviction_policy.hpp: which chunk of a region is evicted next.
//
// Candidates, in order:
//  1. hinted chunks: the program has advised that they are not needed (EvictionHints);
//  2. chunks that a sequential reader has passed (ReadStreams::take_behind);
//  3. cold chunks, found by a clock hand that moves over all chunks.
//
// A chunk has a heat. The hand passes a warm chunk and cools it by one. An access without a fault
// raises no event, so only the time between eviction and refill shows that a chunk is in use: a
// chunk that is refilled soon after its eviction gets heat 2, all others 0 (a ghost list, as in 2Q,
// Johnson and Shasha, VLDB 1994).
//
// The policy evicts nothing itself, makes no system call and reads no clock. It allocates nothing
// and takes no lock. Any context, any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "memory/paging/chunk_table.hpp"
#include "memory/paging/read_streams.hpp"

namespace vellum::region {

// A few ranges of chunks that are evicted before all others. A new range replaces the oldest one;
// its chunks are then evicted in the order of the clock.
class EvictionHints {
 public:
  void add(std::size_t first, std::size_t count) noexcept {
    if (count == 0) return;
    assert(first <= kMaxNumber && count <= kMaxNumber);
    ranges_[next_.fetch_add(1, std::memory_order_relaxed) % kRanges].store(
        pack(first, count), std::memory_order_relaxed);
  }
  // Removes one chunk; each is returned once. False: the hints are empty.
  bool take(std::size_t& index) noexcept {
    for (auto& range : ranges_) {
      std::uint64_t now = range.load(std::memory_order_relaxed);
      while (now != 0) {
        const std::size_t first = now >> 32, count = now & kMaxNumber;
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
  static constexpr std::uint64_t kMaxNumber = 0xffffffff;  // a region has at most 2^30 chunks
  static std::uint64_t pack(std::size_t first, std::size_t count) noexcept {
    return std::uint64_t{first} << 32 | std::uint64_t{count};
  }
  std::atomic<std::uint64_t> ranges_[kRanges] = {};  // 0: free
  std::atomic<unsigned> next_{0};
};

class EvictionPolicy {
 public:
  // `chunks` and `streams` outlive the policy.
  EvictionPolicy(ChunkTable& chunks, ReadStreams& streams) noexcept
      : chunks_(chunks), streams_(streams) {}
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  // Events. REQUIRES: the calling thread has claimed the chunk.

  // The chunk was filled: sets its heat.
  void note_arrival(std::size_t index) noexcept {
    Chunk& chunk = chunks_[index];
    assert(chunk.state.load(std::memory_order_relaxed) == Chunk::kClaimed);
    const std::uint32_t present = present_.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t left = chunk.evicted_at.load(std::memory_order_relaxed);
    const bool soon = left != 0 && evictions() - left < present;
    chunk.heat.store(soon ? kRefilledSoon : 0, std::memory_order_relaxed);
  }
  // The chunk was evicted: numbers the eviction.
  void note_departure(std::size_t index) noexcept {
    assert(chunks_[index].state.load(std::memory_order_relaxed) == Chunk::kClaimed);
    const std::uint32_t number = evictions_.fetch_add(1, std::memory_order_relaxed) + 1;
    chunks_[index].evicted_at.store(number == 0 ? 1 : number);
    present_.fetch_sub(1, std::memory_order_relaxed);
  }

  // Advice: these chunks are evicted before all others.
  void hint(std::size_t first, std::size_t count) noexcept { hints_.add(first, count); }
  // Advice: the hand does not pass this chunk.
  void make_cold(std::size_t index) noexcept {
    chunks_[index].heat.store(0, std::memory_order_relaxed);
  }

  // Removes a chunk from the hints or from those that a reader has passed; each is returned once.
  // It may be missing, or beyond the region's size. False: none.
  bool take_hinted(std::size_t& index) noexcept {
    return hints_.take(index) || streams_.take_behind(index);
  }

  // One search of the clock hand over a region of `chunks` chunks: at most four revolutions.
  struct ClockSweep {
    std::size_t chunks = 0;
    std::size_t visited = 0;
  };
  // Moves the hand to the next cold chunk that is present, and behind it. Cools the warm chunks on
  // the way. Skips parts of the region that no chunk was ever filled in. False: the sweep has
  // ended.
  bool next_cold(ClockSweep& sweep, std::size_t& index) noexcept {
    while (sweep.visited < kMaxRevolutions * sweep.chunks) {
      index = hand_.fetch_add(1, std::memory_order_relaxed) % sweep.chunks;
      const std::size_t skipped = untouched_after(index, sweep.chunks);
      if (skipped != 0) hand_.fetch_add(skipped - 1, std::memory_order_relaxed);
      sweep.visited += std::max<std::size_t>(skipped, 1);
      if (skipped != 0 || !is_present(index)) continue;
      if (is_cold(index)) return true;
      cool(index);
    }
    return false;
  }

  bool is_cold(std::size_t index) const noexcept {
    return chunks_[index].heat.load(std::memory_order_relaxed) == 0;
  }
  // How many chunks were evicted so far, modulo 2^32.
  std::uint32_t evictions() const noexcept { return evictions_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint8_t kRefilledSoon = 2;
  static constexpr std::size_t kMaxRevolutions = 4;
  static constexpr std::size_t kSkipTables = 64;  // one word of the table of touched ranges

  bool is_present(std::size_t index) const noexcept {
    return chunks_[index].state.load(std::memory_order_relaxed) == Chunk::kPresent;
  }
  void cool(std::size_t index) noexcept {
    auto& heat = chunks_[index].heat;
    const std::uint8_t now = heat.load(std::memory_order_relaxed);
    if (now != 0) heat.store(now - 1, std::memory_order_relaxed);
  }
  // How many chunks from here on can be skipped, if `index` is the first of kSkipTables tables that
  // are all untouched; otherwise 0.
  std::size_t untouched_after(std::size_t index, std::size_t chunks) const noexcept {
    const std::size_t step = kSkipTables * kTablePages / chunks_.chunk_pages();
    if (index % step != 0) return 0;
    const std::size_t table = index / step * kSkipTables, end = table + kSkipTables;
    return chunks_.next_touched(table, end) == end ? std::min(step, chunks - index) : 0;
  }

  ChunkTable& chunks_;
  ReadStreams& streams_;
  EvictionHints hints_;
  std::atomic<std::size_t> hand_{0};  // the next chunk to visit
  std::atomic<std::uint32_t> evictions_{0}, present_{0};
};

}  // namespace vellum::region
