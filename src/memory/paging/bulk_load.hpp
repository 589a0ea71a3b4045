// memory/paging/bulk_load.hpp: when a version is bulk loaded, and which unit of it is loaded next.
//
// Faults at many places are the sign: a program that has accessed some parts of a version at random
// is likely to access the rest. From then on all of the version is loaded, in *units* of 2 MiB (the
// range of one page table), each by one thread and only once: the page map, the packs and the cache
// of decoded records are then used in storage order. A few single reads never start a load.
//
// Any context, any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "base/memory/reserve.hpp"

namespace vellum::region {

class BulkLoad {
 public:
  // At most `most_units` of the version's units are loaded.
  BulkLoad(std::size_t chunks, std::size_t unit_chunks, std::size_t most_units)
      : units_((chunks + unit_chunks - 1) / unit_chunks),
        sign_(std::clamp<std::size_t>(chunks / kShareOfSign, kFewFaults, kManyFaults)),
        taken_((units_ / 64 + 1) * sizeof(std::uint64_t)),
        left_(static_cast<std::int64_t>(std::min(most_units, units_))) {
    assert(unit_chunks != 0);
  }

  // Notes a fault in a missing chunk. True: this fault is the sign.
  bool note_fault() noexcept {
    return !begun() && faults_.fetch_add(1, std::memory_order_relaxed) + 1 == sign_;
  }
  // Whether the load is in progress: the sign was seen, and units are left.
  bool begun() const noexcept {
    return faults_.load(std::memory_order_relaxed) >= sign_ &&
           left_.load(std::memory_order_relaxed) > 0;
  }

  // Takes the next unit that no thread has taken. False: none is left.
  bool next(std::size_t& unit) noexcept {
    while (begun()) {
      unit = at_.fetch_add(1, std::memory_order_relaxed);
      if (unit >= units_) break;
      if (take(unit)) return true;
    }
    end();
    return false;
  }
  // Takes this unit, of a missing chunk. False: another thread has taken it, or the load has ended.
  bool take(std::size_t unit) noexcept {
    assert(unit < units_);
    std::atomic<std::uint64_t>& word = word_of(unit);
    const std::uint64_t bit = 1ULL << (unit % 64);
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return false;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return false;
    return left_.fetch_sub(1, std::memory_order_relaxed) > 0;
  }
  // next() skips the units before this one.
  void skip_to(std::size_t unit) noexcept {
    std::size_t at = at_.load(std::memory_order_relaxed);
    while (at < unit && !at_.compare_exchange_weak(at, unit, std::memory_order_relaxed)) {
    }
  }
  void end() noexcept { left_.store(0, std::memory_order_relaxed); }

 private:
  // A sixty-fourth of the chunks, within these bounds.
  static constexpr std::size_t kShareOfSign = 64, kFewFaults = 16, kManyFaults = 1024;

  std::atomic<std::uint64_t>& word_of(std::size_t unit) const noexcept {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(taken_.data())[unit / 64];
  }

  const std::size_t units_;
  const std::size_t sign_;         // number of faults
  const base::Reservation taken_;  // one bit per unit
  std::atomic<std::size_t> faults_{0};
  std::atomic<std::size_t> at_{0};  // the unit that next() tries next
  std::atomic<std::int64_t> left_;  // units that may still be taken
};

}  // namespace vellum::region
