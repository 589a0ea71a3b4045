#include "region/card_tracker.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"
#include "format/records/page_diff.hpp"
#include "memory/cards/marked_pages.hpp"
#include "memory/cards/tracked_range.hpp"

namespace vellum::region {
namespace {

constexpr std::uint64_t kGranuleBytes = 1ULL << cards::kGranuleShift;

// The address of a branch at its first opening: different from those of other branches, so that it
// is free again at the next opening.
std::uint64_t usual_address(std::uint64_t branch_id) {
  constexpr std::uint64_t kPlaces = (cards::kWindowEnd - cards::kWindowBegin) / kGranuleBytes / 2;
  const std::uint64_t scattered = branch_id * 0x9e3779b97f4a7c15 >> 32;
  return cards::kWindowBegin + scattered % kPlaces * kGranuleBytes;
}

std::unique_ptr<cards::TrackedRange> reserve(const MemoryOptions& memory, std::uint64_t branch_id) {
  const bool fits =
      cards::in_window(memory.wanted_address) && memory.wanted_address % kGranuleBytes == 0;
  if (memory.address_required)
    return std::make_unique<cards::TrackedRange>(memory.capacity_bytes, memory.wanted_address);
  try {
    return std::make_unique<cards::TrackedRange>(
        memory.capacity_bytes, fits ? memory.wanted_address : usual_address(branch_id));
  } catch (const Error& error) {
    if (error.code() != Errc::busy) throw;
    return std::make_unique<cards::TrackedRange>(memory.capacity_bytes);
  }
}

}  // namespace

std::unique_ptr<CardTracker> CardTracker::make(const RegionOptions& options, MemoryOptions& memory,
                                               std::uint64_t branch_id) {
  if (options.tracker == Tracker::pages) return nullptr;
  if (options.over_reservation)
    fail(Errc::invalid_argument,
         "a region with tracker cards reserves its addresses itself: over_reservation does not "
         "work with it");
  assert(memory.capacity_bytes != 0 && !memory.over_reservation);
  auto range = reserve(memory, branch_id);
  memory.over_reservation = true;
  memory.wanted_address = reinterpret_cast<std::uintptr_t>(range->data());
  const bool pages_too = options.tracker == Tracker::cards_and_pages || memory.image != nullptr;
  return std::unique_ptr<CardTracker>(new CardTracker(
      std::move(range), pages_too, options.verify_cards || cards::verify_by_environment()));
}

// The first page with lines that have changed and are not marked; none: 0 cards. A page that is not
// in memory is in the spill file, and its marks were taken before, as were those of a bare page.
cards::MarkedPage CardTracker::missed_store(RegionMemory& memory,
                                            const std::vector<PageNumber>& written) const {
  format::PageDiff diff;
  for (const PageNumber page : written) {
    memory.hold(page, 1);
    std::uint64_t missed = 0;
    if (memory.is_present(page) && !memory.is_bare(page)) {
      diff_page(memory.base_copy_of(page), memory.data() + page * kPageBytes, diff);
      missed = diff.lines;
    }
    memory.release(page, 1);
    const auto number = static_cast<std::uint32_t>(page);
    missed &= ~cards_of(marked_, number);
    if (missed != 0) return {number, missed};
  }
  return {};
}

// Concurrent threads may have set marks since the marks were taken: only lines that are still
// unmarked were missed.
void CardTracker::check_marks(RegionMemory& memory, const std::vector<PageNumber>& written) {
  const cards::MarkedPage found = missed_store(memory, written);
  if (found.cards == 0) return;
  std::vector<cards::MarkedPage> later;
  range_->take(later);
  range_->put_back(later);  // for the next commit
  std::sort(later.begin(), later.end(), cards::by_page);
  marked_ = united(marked_, later);
  const cards::MarkedPage missed = missed_store(memory, written);
  if (missed.cards != 0) cards::throw_missed_store("the region", memory.data(), missed);
}

void CardTracker::collect(RegionMemory& memory, std::vector<PageNumber>& out) {
  marked_.clear();
  range_->take(marked_);
  try {
    find_stores(memory, out);
  } catch (...) {
    range_->put_back(marked_);
    throw;
  }
}

void CardTracker::find_stores(RegionMemory& memory, std::vector<PageNumber>& out) {
  std::sort(marked_.begin(), marked_.end(), cards::by_page);
  std::vector<PageNumber> pages;
  const PageNumber end = memory.size_bytes() / kPageBytes;
  for (const cards::MarkedPage& page : marked_)
    if (page.page < end) pages.push_back(page.page);
  if (!pages_too_ && !verify_) return memory.collect_dirty(out, &pages);
  std::vector<PageNumber> written;
  memory.collect_dirty(written);
  std::set_union(written.begin(), written.end(), pages.begin(), pages.end(),
                 std::back_inserter(out));
  if (!verify_) return;
  // Pages that failed before are checked again: they are armed, and their marks have been put back.
  std::vector<PageNumber> suspects;
  std::set_union(written.begin(), written.end(), suspects_.begin(), suspects_.end(),
                 std::back_inserter(suspects));
  suspects_ = std::move(suspects);
  check_marks(memory, suspects_);
  suspects_.clear();
}

}  // namespace vellum::region
