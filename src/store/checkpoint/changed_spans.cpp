#include "store/checkpoint/changed_spans.hpp"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

namespace vellum::store {

using format::DeltaSpan;
using format::MapEntry;
using format::PageNumber;

std::size_t ChangedSpans::Batch::bytes() const noexcept {
  return sizeof(Batch) + pages.capacity() * sizeof(PageNumber) +
         first_spans.capacity() * sizeof(std::size_t) + spans.capacity() * sizeof(DeltaSpan) +
         bases.capacity() * sizeof(MapEntry);
}

void ChangedSpans::add(const format::DeltaBatch& deltas, std::vector<MapEntry> bases) {
  assert(bases.empty() || bases.size() == deltas.pages().size());
  if (deltas.empty()) return;
  Batch batch{deltas.pages().front().page, deltas.pages().back().page, {}, {}, {}, {}};
  batch.pages.reserve(deltas.pages().size());
  batch.first_spans.reserve(deltas.pages().size() + 1);
  std::size_t spans = 0;
  for (const auto& delta : deltas.pages()) {
    batch.pages.push_back(delta.page);
    batch.first_spans.push_back(spans);
    spans += delta.spans;
  }
  batch.first_spans.push_back(spans);
  batch.spans.reserve(spans);
  for (const auto& delta : deltas.pages()) {
    const auto of_page = deltas.spans_of(delta);
    batch.spans.insert(batch.spans.end(), of_page.begin(), of_page.end());
  }
  batch.bases = std::move(bases);
  batches_.push_back(std::move(batch));
  bytes_ += batches_.back().bytes();
  while (bytes_ > max_bytes_ || batches_.size() > kMaxBatches) {
    bytes_ -= batches_.front().bytes();
    batches_.pop_front();
  }
}

bool ChangedSpans::touch(PageNumber page, std::size_t deltas, format::DeltaComposer& changed,
                         std::optional<MapEntry>& base) const {
  for (auto batch = batches_.rbegin(); deltas > 0 && batch != batches_.rend(); ++batch) {
    if (page < batch->first_page || page > batch->last_page) continue;
    const auto& pages = batch->pages;
    const auto at = std::lower_bound(pages.begin(), pages.end(), page);
    if (*at != page) continue;
    const auto i = static_cast<std::size_t>(at - pages.begin());
    const std::size_t first = batch->first_spans[i];
    changed.touch(std::span(batch->spans).subspan(first, batch->first_spans[i + 1] - first));
    if (--deltas == 0 && !batch->bases.empty()) base = batch->bases[i];
  }
  return deltas == 0;
}

void ChangedSpans::clear() noexcept {
  batches_.clear();
  bytes_ = 0;
}

}  // namespace vellum::store
