// memory/statistics/counters.hpp: the counters of a region, for `vellum top`.
//
// No call waits, allocates or fails, except the constructor: faults and commits pay a few relaxed
// atomic operations, whether or not a process reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vellum/region.hpp>

#include "memory/statistics/layout.hpp"
#include "memory/statistics/process_page.hpp"

namespace vellum::region {

class Counters {
 public:
  // Counts nothing.
  Counters() = default;
  // Of a region in this process. Without a free slot it counts nothing.
  Counters(const std::string& store, const std::string& version, bool writable) noexcept;
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  // Signal context.
  void count_fault(statistics::FaultKind kind, std::size_t chunk) noexcept {
    if (slot_ == nullptr) return;
    add(stripe(chunk).faults[static_cast<std::size_t>(kind)], 1);
  }
  void count_arrival(std::size_t chunk) noexcept {
    if (slot_ != nullptr) add(stripe(chunk).chunks_in, 1);
  }
  void count_departure(std::size_t chunk) noexcept {
    if (slot_ != nullptr) add(stripe(chunk).chunks_out, 1);
  }
  void count_opened(std::size_t chunk, std::size_t pages) noexcept {
    if (slot_ != nullptr) add(stripe(chunk).pages_opened, pages);
  }
  void count_closed(std::size_t chunk, std::size_t pages) noexcept {
    if (slot_ != nullptr) add(stripe(chunk).pages_closed, pages);
  }
  void note_resident(std::int64_t pages) noexcept {
    if (slot_ != nullptr)
      set(slot_->resident_pages, pages < 0 ? 0 : static_cast<std::uint64_t>(pages));
  }
  void note_spilled(std::uint64_t pages, std::uint64_t written_bytes) noexcept {
    if (slot_ == nullptr) return;
    set(slot_->spilled_pages, pages);
    set(slot_->spill_written_bytes, written_bytes);
  }

  // One commit at a time.
  void note_shape(Engine engine, bool counts_dirty, const void* address,
                  std::uint64_t region_bytes) noexcept;
  void note_size(std::uint64_t region_bytes) noexcept;
  // `backlog_bytes`: bytes in the journal that no checkpoint has.
  void note_commit(const CommitReport& report, std::uint64_t region_bytes,
                   std::uint64_t backlog_bytes) noexcept;

 private:
  static void add(statistics::Counter& counter, std::uint64_t n) noexcept {
    counter.fetch_add(n, std::memory_order_relaxed);
  }
  static void set(statistics::Counter& counter, std::uint64_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
  }
  statistics::Stripe& stripe(std::size_t chunk) noexcept {
    return slot_->stripes[chunk % statistics::kStripes];
  }

  std::shared_ptr<statistics::ProcessPage> page_;
  statistics::Slot* slot_ = nullptr;
};

}  // namespace vellum::region
