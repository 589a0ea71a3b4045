#include "store/page_map/changed_spans.hpp"

namespace vellum::store {

using format::DeltaSpan;
using format::PageNumber;

void ChangedSpans::note(PageNumber page, std::uint8_t depth, std::span<const DeltaSpan> spans) {
  if (spans_ + spans.size() > kMaxSpans) clear();
  if (depth == 1) {
    Chain& chain = pages_[page];
    spans_ += spans.size() - chain.spans.size();
    chain.spans.assign(spans.begin(), spans.end());
    chain.base.reset();
    return;
  }
  const auto known = pages_.find(page);
  if (known == pages_.end()) return;
  auto& before = known->second.spans;
  before.insert(before.end(), spans.begin(), spans.end());
  spans_ += spans.size();
}

std::span<const DeltaSpan> ChangedSpans::of(PageNumber page) const noexcept {
  const auto known = pages_.find(page);
  return known == pages_.end() ? std::span<const DeltaSpan>() : known->second.spans;
}

const format::MapEntry* ChangedSpans::base_of(PageNumber page) const noexcept {
  const auto known = pages_.find(page);
  return known == pages_.end() || !known->second.base ? nullptr : &*known->second.base;
}

void ChangedSpans::note_base(const format::MapEntry& base) {
  const auto known = pages_.find(base.page);
  if (known != pages_.end()) known->second.base = base;
}

void ChangedSpans::clear() noexcept {
  pages_.clear();
  spans_ = 0;
}

}  // namespace vellum::store
