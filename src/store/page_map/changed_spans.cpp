#include "store/page_map/changed_spans.hpp"

namespace vellum::store {

using format::DeltaSpan;
using format::PageNumber;

void ChangedSpans::note(PageNumber page, std::uint8_t depth, std::span<const DeltaSpan> spans) {
  if (spans_ + spans.size() > kMaxSpans) clear();
  if (depth == 1) {
    auto& known = pages_[page];
    spans_ += spans.size() - known.size();
    known.assign(spans.begin(), spans.end());
    return;
  }
  const auto known = pages_.find(page);
  if (known == pages_.end()) return;
  known->second.insert(known->second.end(), spans.begin(), spans.end());
  spans_ += spans.size();
}

std::span<const DeltaSpan> ChangedSpans::of(PageNumber page) const noexcept {
  const auto known = pages_.find(page);
  return known == pages_.end() ? std::span<const DeltaSpan>() : known->second;
}

void ChangedSpans::clear() noexcept {
  pages_.clear();
  spans_ = 0;
}

}  // namespace vellum::store
