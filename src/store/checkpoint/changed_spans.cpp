#include "store/checkpoint/changed_spans.hpp"

#include <utility>

#include "store/checkpoint/newest_entries.hpp"

namespace vellum::store {

using format::DeltaSpan;
using format::MapEntry;
using format::PageNumber;

void ChangedSpans::begin(const MapEntry& base, std::span<const DeltaSpan> spans) {
  stay_within(kBytesPerPage + spans.size_bytes());
  Chain fresh{{spans.begin(), spans.end()}, base};
  forget(base.page);
  chains_.emplace(base.page, std::move(fresh));
  span_count_ += spans.size();
}

void ChangedSpans::extend(PageNumber page, std::span<const DeltaSpan> spans) {
  if (chains_.empty()) return;
  const auto known = chains_.find(page);
  if (known == chains_.end()) return;
  auto& all = known->second.spans;
  all.insert(all.end(), spans.begin(), spans.end());
  span_count_ += spans.size();
  stay_within(0);
}

void ChangedSpans::update(std::span<const MapEntry> entries) {
  for_each_newest(entries, [this](const MapEntry& e, PageNumber first, PageNumber end) {
    if (e.depth != 0) return;
    for (PageNumber page = first; page < end && !chains_.empty(); ++page) forget(page);
  });
}

const ChangedSpans::Chain* ChangedSpans::find(PageNumber page) const noexcept {
  const auto known = chains_.find(page);
  return known == chains_.end() ? nullptr : &known->second;
}

std::size_t ChangedSpans::bytes() const noexcept {
  return chains_.size() * kBytesPerPage + span_count_ * sizeof(DeltaSpan);
}

void ChangedSpans::forget(PageNumber page) noexcept {
  const auto known = chains_.find(page);
  if (known == chains_.end()) return;
  span_count_ -= known->second.spans.size();
  chains_.erase(known);
}

void ChangedSpans::stay_within(std::size_t more_bytes) noexcept {
  if (bytes() + more_bytes > max_bytes_) clear();
}

void ChangedSpans::clear() noexcept {
  chains_.clear();
  span_count_ = 0;
}

}  // namespace vellum::store
