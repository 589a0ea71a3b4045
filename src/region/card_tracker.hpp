// region/card_tracker.hpp: tracker cards of a region.
// The region's memory is in a tracked range, whose marks record the stores.
#pragma once

#include <vellum/region.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/cards/tracked_range.hpp"
#include "memory/memory.hpp"

namespace vellum::region {

class CardTracker {
 public:
  // Reserves the region's addresses and enters them in `memory`. Returns null and does
  // nothing if RegionOptions::tracker is `pages`. Errors: see TrackedRange, RegionOptions.
  static std::unique_ptr<CardTracker> make(const RegionOptions& options, MemoryOptions& memory,
                                           std::uint64_t branch_id);

  // RegionMemory::collect_dirty(), by marks. Throws Errc::corrupted (see
  // RegionOptions::verify_cards); `out` then still receives the pages that were found.
  void collect(RegionMemory& memory, std::vector<PageNumber>& out);
  // The commit of what the last collect() found has failed: the next one finds the marks again.
  void put_back() noexcept { range_->put_back(marked_); }
  // The marks that the last collect() found, ascending: a commit compares only these lines of the
  // pages. Empty if pages are tracked as well: a page may then have stores that no card
  // marks.
  std::span<const cards::MarkedPage> marks() const noexcept {
    return pages_too_ ? std::span<const cards::MarkedPage>() : marked_;
  }

 private:
  CardTracker(std::unique_ptr<cards::TrackedRange> range, bool pages_too, bool verify)
      : range_(std::move(range)), pages_too_(pages_too), verify_(verify) {}
  void find_stores(RegionMemory& memory, std::vector<PageNumber>& out);
  cards::MarkedPage missed_store(RegionMemory& memory,
                                 const std::vector<PageNumber>& written) const;
  void check_marks(RegionMemory& memory, const std::vector<PageNumber>& written);

  std::unique_ptr<cards::TrackedRange> range_;
  const bool pages_too_, verify_;
  std::vector<cards::MarkedPage> marked_;  // of the last collect(), ascending
  std::vector<PageNumber> suspects_;       // written, but not found to be marked
};

}  // namespace vellum::region
