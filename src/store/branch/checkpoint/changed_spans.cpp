#include "store/branch/checkpoint/changed_spans.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace vellum::store {

using format::DeltaBatch;
using format::MapEntry;
using format::PageNumber;

std::size_t ChangedSpans::Batch::bytes() const noexcept {
  return sizeof(Batch) + deltas.memory_bytes() + bases.capacity() * sizeof(MapEntry);
}

void ChangedSpans::add(DeltaBatch&& deltas, std::vector<MapEntry> bases) {
  assert(bases.empty() || bases.size() == deltas.pages().size());
  if (deltas.empty()) return;
  deltas.drop_bytes();
  const PageNumber first = deltas.pages().front().page, last = deltas.pages().back().page;
  batches_.push_back({first, last, std::move(deltas), std::move(bases)});
  bytes_ += batches_.back().bytes();
  assert(first <= last);
  while (bytes_ > max_bytes_ || batches_.size() > kMaxBatches) {
    assert(bytes_ >= batches_.front().bytes());
    bytes_ -= batches_.front().bytes();
    batches_.pop_front();
  }
}

bool ChangedSpans::touch(PageNumber page, std::size_t deltas, format::DeltaComposer& changed,
                         std::optional<MapEntry>& base) const {
  for (auto batch = batches_.rbegin(); deltas > 0 && batch != batches_.rend(); ++batch) {
    if (page < batch->first_page || page > batch->last_page) continue;
    const auto& pages = batch->deltas.pages();
    const auto at =
        std::lower_bound(pages.begin(), pages.end(), page,
                         [](const DeltaBatch::Page& d, PageNumber p) { return d.page < p; });
    assert(at != pages.end());
    if (at->page != page) continue;
    changed.touch(batch->deltas.spans_of(*at));
    if (--deltas == 0 && !batch->bases.empty()) {
      base = batch->bases[static_cast<std::size_t>(at - pages.begin())];
    }
  }
  return deltas == 0;
}

void ChangedSpans::clear() noexcept {
  batches_.clear();
  bytes_ = 0;
}

}  // namespace vellum::store
