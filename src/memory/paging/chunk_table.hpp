// memory/paging/chunk_table.hpp: which chunks are in memory, and which are claimed by a thread.
//
// A chunk is missing, claimed by one thread while others wait, or present. A claimed chunk is being
// filled or evicted, or its spilled pages are being read. REQUIRES: a thread that has claimed a
// chunk touches no region memory.
//
// Any context, any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vellum/region.hpp>

#include "base/memory/reserve.hpp"
#include "memory/paging/sizes.hpp"

namespace vellum::region {

struct Chunk {
  enum State : std::uint32_t { kMissing = 0, kClaimed = 1, kPresent = 2 };
  std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> evicted_at;  // number of its last eviction; 0: never
  std::atomic<std::uint16_t> holds;
  std::atomic<std::uint8_t> heat;        // how many more times the clock hand passes it
  std::atomic<std::uint8_t> newer;       // its base copies are newer than the source
  std::atomic<Advice> advice;            // normal, sequential or random
  std::atomic<std::uint8_t> prefetched;  // filled by prefetch, no access since is known
  // 1 + the sole mapped page, counted from the chunk's first page; the others are zeros that were
  // never accessed. 0: every page is mapped, or has a base copy.
  std::atomic<std::uint8_t> sole_mapped_page;
  // The scan, modulo 256, that last found a dirty page in it.
  std::atomic<std::uint8_t> scanned_at;
};

class ChunkTable {
 public:
  // All chunks are missing. Throws Errc::out_of_memory.
  ChunkTable(std::uint64_t capacity_bytes, std::size_t chunk_bytes)
      : count_(capacity_bytes / chunk_bytes + 1),
        chunk_pages_(chunk_bytes / kPageBytes),
        chunks_(count_ * sizeof(Chunk)),
        touched_((capacity_bytes / kTableBytes / 64 + 1) * sizeof(std::uint64_t)),
        written_(touched_.size()) {}

  std::size_t size() const noexcept { return count_; }  // one more than the capacity has
  std::size_t chunk_pages() const noexcept { return chunk_pages_; }
  Chunk& operator[](std::size_t index) const noexcept {
    assert(index < count_);
    return reinterpret_cast<Chunk*>(chunks_.data())[index];
  }
  bool is_missing(std::size_t index) const noexcept {
    return (*this)[index].state.load(std::memory_order_acquire) == Chunk::kMissing;
  }
  bool is_present(std::size_t index) const noexcept {
    return (*this)[index].state.load(std::memory_order_acquire) == Chunk::kPresent;
  }

  // Claims a chunk in state `from`. False: it is in another state.
  bool claim(std::size_t index, std::uint32_t from) noexcept {
    assert(from != Chunk::kClaimed);
    return (*this)[index].state.compare_exchange_strong(from, Chunk::kClaimed);
  }
  // Claims a chunk once no other thread has it. Returns its state before.
  std::uint32_t claim_settled(std::size_t index) noexcept {
    for (;;) {
      if (claim(index, Chunk::kMissing)) return Chunk::kMissing;
      if (claim(index, Chunk::kPresent)) return Chunk::kPresent;
      wait_while_claimed(index);
    }
  }
  // Ends the claims of `count` chunks. REQUIRES: the calling thread has claimed them.
  void settle(std::size_t index, std::size_t count, std::uint32_t state) noexcept {
    assert(state != Chunk::kClaimed);
    for (std::size_t i = index; i < index + count; ++i) {
      assert((*this)[i].state.load(std::memory_order_relaxed) == Chunk::kClaimed);
      (*this)[i].state.store(state);
      (*this)[i].state.notify_all();
    }
  }
  void wait_while_claimed(std::size_t index) const noexcept {
    (*this)[index].state.wait(Chunk::kClaimed, std::memory_order_acquire);
  }

  // A held chunk is not evicted. Waits for an eviction in progress, which claims the chunk before
  // it checks the holds.
  void hold(std::size_t index) noexcept {
    (*this)[index].holds.fetch_add(1);
    wait_while_claimed(index);
  }
  void release(std::size_t index) noexcept {
    [[maybe_unused]] const std::uint16_t before = (*this)[index].holds.fetch_sub(1);
    assert(before != 0);
  }
  bool is_held(std::size_t index) const noexcept { return (*this)[index].holds.load() != 0; }

  // Page tables of the processor in which a chunk was ever present: scans skip all others.
  void touch(PageNumber first, std::size_t count) noexcept {
    assert(count != 0);
    for (std::size_t table = first / kTablePages; table <= (first + count - 1) / kTablePages;
         ++table) {
      touched_word(table).fetch_or(1ULL << (table % 64), std::memory_order_release);
    }
  }
  bool is_touched(std::size_t table) const noexcept {
    return (touched_word(table).load(std::memory_order_acquire) >> (table % 64) & 1) != 0;
  }
  // The first table in [table, end) that is touched, or not touched; `end`: none.
  std::size_t next_touched(std::size_t table, std::size_t end) const noexcept {
    return next_set(touched_, table, end);
  }
  std::size_t next_untouched(std::size_t table, std::size_t end) const noexcept {
    while (table < end && is_touched(table)) ++table;
    return table;
  }

  // Tables in which commits have found dirty pages.
  void note_written(std::size_t table) noexcept {
    word_of(written_, table).fetch_or(1ULL << (table % 64));
  }
  void forget_written(std::size_t table) noexcept {
    word_of(written_, table).fetch_and(~(1ULL << (table % 64)));
  }
  std::size_t next_written(std::size_t table, std::size_t end) const noexcept {
    return next_set(written_, table, end);
  }

 private:
  static std::atomic<std::uint64_t>& word_of(const base::Reservation& bits,
                                             std::size_t table) noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(bits.data())[table / 64];
  }
  std::atomic<std::uint64_t>& touched_word(std::size_t table) const noexcept {
    return word_of(touched_, table);
  }
  static std::size_t next_set(const base::Reservation& bits, std::size_t table,
                              std::size_t end) noexcept {
    while (table < end) {
      const std::uint64_t word =
          word_of(bits, table).load(std::memory_order_acquire) >> (table % 64);
      if (word != 0) {
        return std::min(table + static_cast<std::size_t>(__builtin_ctzll(word)), end);
      }
      table = (table / 64 + 1) * 64;
    }
    return end;
  }

  const std::size_t count_, chunk_pages_;
  base::Reservation chunks_;   // one Chunk each
  base::Reservation touched_;  // one bit per table
  base::Reservation written_;  // one bit per table
};

}  // namespace vellum::region
