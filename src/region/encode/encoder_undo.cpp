// region/encode/encoder_undo.cpp: the content of the last commit, kept until the next one is durable.
#include <atomic>
#include <utility>

#include "region/encode/encoder.hpp"
#include "region/encode/encoder_slice.hpp"

namespace vellum::region {
namespace {

using format::PageNumber;

}  // namespace

void Encoder::keep_old_page(PageNumber page, Slice& slice) {
  if (kept_bytes_.fetch_add(kPageBytes, std::memory_order_relaxed) >= undo_budget_bytes_) {
    slice.reload.push_back(page);
    return;
  }
  static constexpr format::DeltaSpan kWholePage{0, kPageBytes};
  slice.old_bytes.add(page, std::span(&kWholePage, 1), {backing_.base_copy(page), kPageBytes});
}

// A page may have lost its private copy because it equalled its base copy. The program's content must
// survive the restoration of the base copy, so the page gets a private copy first.
void Encoder::undo(const std::function<void(std::span<const PageNumber>)>& reload) {
  const auto slices = std::move(slices_);
  accept();
  for (const auto& slice : slices) {
    for (const auto& old : slice->old_bytes.pages()) {
      const HeldPage held(memory_, old.page);
      memory_.make_private(old.page);
      format::apply_delta(slice->old_bytes.spans_of(old), slice->old_bytes.bytes_of(old),
                          backing_.base_copy(old.page));
    }
    for (const PageNumber page : slice->fresh) {
      const HeldPage held(memory_, page);
      memory_.make_private(page);
      backing_.drop_base_copies(page, 1);
    }
  }
  for (const auto& slice : slices) {
    std::vector<PageNumber> back = slice->reload;
    memory_.give_back(slice->taken, back);
    if (!back.empty()) reload(back);
  }
}

std::vector<PageNumber> Encoder::accept() {
  std::vector<PageNumber> taken;
  for (const auto& slice : slices_) {
    taken.insert(taken.end(), slice->taken.begin(), slice->taken.end());
  }
  slices_.clear();
  kept_bytes_.store(0, std::memory_order_relaxed);
  return taken;
}

}  // namespace vellum::region
