// region/memory/card_tracker.hpp: tracker cards of a region: its memory lies in a tracked range,
// and what was stored to is what the marks say.
#pragma once

#include <vellum/region.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "cards/tracked_range.hpp"
#include "region/memory/memory.hpp"

namespace vellum::region {

class CardTracker {
 public:
  // Reserves where the region goes, and tells `memory`. Null, and nothing happens, for tracker
  // pages. What it throws: see TrackedRange, RegionOptions.
  static std::unique_ptr<CardTracker> make(const RegionOptions& options, MemoryOptions& memory,
                                           std::uint64_t branch_id);

  // RegionMemory::collect_dirty(), by marks. Errc::damaged: see RegionOptions::verify_cards;
  // `out` has what was found even so.
  void collect(RegionMemory& memory, std::vector<PageNumber>& out);

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
  std::vector<PageNumber> suspects_;       // written, and not found to be marked
};

// VELLUM_VERIFY_CARDS.
bool verify_cards_by_environment();

}  // namespace vellum::region
