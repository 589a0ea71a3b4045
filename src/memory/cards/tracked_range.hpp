// memory/cards/tracked_range.hpp: a range of the window, whose marked cards can be taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/cards/table.hpp"

namespace vellum::cards {

// The marked cards of a page of a range: bit i stands for its bytes [64 i, 64 i + 64).
struct MarkedPage {
  std::uint32_t page = 0;
  std::uint64_t cards = 0;
};

class TrackedRange {
 public:
  // Reserves `capacity_bytes` of the window (a multiple of 4096, at most 4 TiB), mapped PROT_NONE,
  // with all cards clear, at `address`, a multiple of 4 GiB, unless that is 0. Errors: Errc::busy
  // when the address is taken, out_of_memory, invalid_argument, and those of reserve_table().
  explicit TrackedRange(std::uint64_t capacity_bytes, std::uint64_t address = 0);
  ~TrackedRange();  // unmaps. REQUIRES: no thread marks in the range any more
  TrackedRange(const TrackedRange&) = delete;
  TrackedRange& operator=(const TrackedRange&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

  // Clears all marks and appends them to `out`, in no order, each page once. A store whose mark was
  // taken is in memory for later reads. A later store marks again, or was marked before and taken.
  // One take() at a time, not in a signal handler: it waits for marks that have begun.
  void take(std::vector<MarkedPage>& out);
  // Marks taken pages again.
  void put_back(std::span<const MarkedPage> pages) noexcept;
  // Whether no card is marked.
  bool clean() const noexcept;

 private:
  void wait_for_markers() noexcept;
  std::uint64_t take_page(std::uint64_t page_address) noexcept;
  void prefetch_page(std::uint64_t at, std::uint64_t head) const noexcept;

  std::byte* data_ = nullptr;
  std::uint64_t capacity_bytes_ = 0;
  std::unique_ptr<vellum_card_queue> queue_;
};

// The search for stores that were not marked. VELLUM_VERIFY_CARDS: every commit compares all changed lines with the marks.
bool verify_by_environment();

// Throws Errc::corrupted: `what` names the file or region at `data`, `missed` has the first line.
[[noreturn]] void throw_missed_store(const std::string& what, const std::byte* data,
                                     MarkedPage missed);

}  // namespace vellum::cards
