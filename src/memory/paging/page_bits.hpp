// memory/paging/page_bits.hpp: one bit for each page of a region.
//
// Any context, any number of threads.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/memory/reserve.hpp"
#include "memory/paging/bits.hpp"
#include "memory/paging/sizes.hpp"

namespace vellum::region {

class PageBits {
 public:
  // No bit is set. Throws Errc::out_of_memory.
  explicit PageBits(std::uint64_t capacity_bytes)
      : words_(capacity_bytes / kPageBytes / 8 + sizeof(std::uint64_t)) {}

  bool test(PageNumber page) const noexcept {
    return (word(page).load(std::memory_order_acquire) >> (page % 64) & 1) != 0;
  }

  // REQUIRES: the pages are in one word, as those of a chunk are. `bits` has one bit for each, from
  // `first` on.
  std::uint64_t of(PageNumber first, std::size_t count) const noexcept {
    assert(count <= 64 && first % 64 + count <= 64);
    return word(first).load(std::memory_order_acquire) >> (first % 64) & bits_below(count);
  }
  void set(PageNumber first, std::uint64_t bits) noexcept {
    if (bits != 0) word(first).fetch_or(bits << (first % 64), std::memory_order_acq_rel);
  }
  void clear(PageNumber first, std::uint64_t bits) noexcept {
    bits <<= first % 64;
    if ((word(first).load(std::memory_order_relaxed) & bits) == 0) return;
    word(first).fetch_and(~bits, std::memory_order_acq_rel);
  }

 private:
  std::atomic<std::uint64_t>& word(PageNumber page) const noexcept {
    assert(page / 64 * sizeof(std::uint64_t) < words_.size());
    return reinterpret_cast<std::atomic<std::uint64_t>*>(words_.data())[page / 64];
  }

  base::Reservation words_;
};

}  // namespace vellum::region
