#include "store/branch/changed_spans.hpp"

#include <algorithm>
#include <utility>

namespace vellum::store {

using format::DeltaSpan;
using format::MapEntry;
using format::PageNumber;

void ChangedSpans::note(PageNumber page, std::uint8_t depth, std::span<const DeltaSpan> spans) {
  stay_within(kBytesPerPage + spans.size_bytes());
  if (depth == 1) {
    std::vector<DeltaSpan> fresh(spans.begin(), spans.end());  // an empty list would look known
    auto& known = spans_[page];
    span_count_ += spans.size() - known.size();
    known = std::move(fresh);
    bases_.erase(page);
    return;
  }
  const auto known = spans_.find(page);
  if (known == spans_.end()) return;
  known->second.insert(known->second.end(), spans.begin(), spans.end());
  span_count_ += spans.size();
}

void ChangedSpans::note_base(const MapEntry& base) {
  if (!spans_.contains(base.page)) return;
  stay_within(kBytesPerBase);
  if (spans_.contains(base.page)) bases_.insert_or_assign(base.page, base);
}

void ChangedSpans::update(std::span<const MapEntry> entries) {
  PageNumber end = 0;
  for (const MapEntry& e : entries) {
    const PageNumber first =
        std::max(e.page, end);  // the rest of a chain lies below its first entry
    end = e.page + e.count;
    if (e.depth != 0) continue;
    for (PageNumber page = first; page < end && !spans_.empty(); ++page) forget(page);
  }
}

std::span<const DeltaSpan> ChangedSpans::of(PageNumber page) const noexcept {
  const auto known = spans_.find(page);
  return known == spans_.end() ? std::span<const DeltaSpan>() : known->second;
}

const MapEntry* ChangedSpans::base_of(PageNumber page) const noexcept {
  const auto known = bases_.find(page);
  return known == bases_.end() ? nullptr : &known->second;
}

std::size_t ChangedSpans::bytes() const noexcept {
  return spans_.size() * kBytesPerPage + bases_.size() * kBytesPerBase +
         span_count_ * sizeof(DeltaSpan);
}

void ChangedSpans::forget(PageNumber page) noexcept {
  const auto known = spans_.find(page);
  if (known == spans_.end()) return;
  span_count_ -= known->second.size();
  spans_.erase(known);
  bases_.erase(page);
}

void ChangedSpans::stay_within(std::size_t more_bytes) noexcept {
  if (bytes() + more_bytes > max_bytes_) clear();
}

void ChangedSpans::clear() noexcept {
  spans_.clear();
  bases_.clear();
  span_count_ = 0;
}

}  // namespace vellum::store
