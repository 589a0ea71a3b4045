#include "memory/paged/bulk_loader.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>

#include "base/threads/thread_pool.hpp"
#include "memory/paged/fill/chunk_filler.hpp"
#include "memory/paged/fill/prefetcher.hpp"
#include "memory/paged/fill/version_sharing.hpp"

namespace vellum::region {
namespace {

using std::chrono::steady_clock;

// The read-ahead thread serves other regions in between.
constexpr std::chrono::milliseconds kLoadStep{5};

}  // namespace

void BulkLoader::prepare() {
  assert(load_ == nullptr);
  const MemoryOptions& options = state_.options;
  if (options.writable || options.keeps_working_set || state_.source.shared() == nullptr) return;
  const std::size_t half = state_.pager->limit_bytes() / 2 / (kUnitPages * kPageBytes);
  load_ = std::make_unique<BulkLoad>(state_.chunk_count(), unit_chunks(), half);
}

bool BulkLoader::take_unit_of(std::size_t index) noexcept {
  return load_ != nullptr && load_->begun() && has_room_for_unit() && load_->take(unit_of(index));
}

// Nothing is evicted for a load, of this region or another.
bool BulkLoader::has_room_for_unit() noexcept {
  if (!state_.pager->is_doubtful() && state_.pager->lacking(kUnitPages) == 0) return true;
  load_->end();
  return false;
}

// A chunk that cannot be read is left to the fault that needs it.
void BulkLoader::load_unit(std::size_t unit) noexcept {
  const std::size_t first = unit * unit_chunks();
  if (state_.options.shared) return sharing_.load(first, unit_chunks());
  for (std::size_t index = first; index < first + unit_chunks(); ++index) {
    if (!state_.worth_reading_ahead(index)) continue;
    store::ReadFailure ignored;
    filler_.fill(index, ignored);
  }
  state_.backing.unmap_alias(unit * kUnitPages, kUnitPages);
}

void BulkLoader::load_shared_unit_of(std::size_t index) noexcept {
  if (load_ == nullptr || !load_->begun()) return;
  const std::size_t unit = unit_of(index);
  sharing_.map_full(unit * unit_chunks(), unit_chunks());
  if (state_.chunks.is_missing(index) && take_unit_of(index)) load_unit(unit);
}

// Loads the next unit, or skips a stretch of zeros.
bool BulkLoader::load_next_unit() noexcept {
  std::size_t unit = 0;
  if (!has_room_for_unit() || !load_->next(unit)) return false;
  const PageNumber first = unit * kUnitPages, end = state_.size_pages();
  assert(first < end);
  const std::size_t zero_pages = state_.zeros_from(first, end - first);
  if (zero_pages < kUnitPages) {
    load_unit(unit);
  } else {
    load_->skip_to(unit + zero_pages / kUnitPages);
  }
  return true;
}

bool BulkLoader::step() noexcept {
  if (state_.options.writable) return prefetcher_.step();
  const bool of_set = prefetcher_.has_candidates();
  const bool in_progress = load_ != nullptr && load_->begun();
  // Of the readers that share a version, one loads the chunks that no reader has accessed yet.
  const auto& shared = state_.options.shared;
  if (!of_set && (!in_progress || (shared && !shared->is_loader()))) {
    if (shared) shared->resign();
    helpers_.reset();
    return false;
  }
  const auto until = steady_clock::now() + kLoadStep;
  const auto load = [&](std::size_t, std::size_t) {
    bool any = true;
    while (any && steady_clock::now() < until) any = of_set ? prefetcher_.step() : load_next_unit();
    if (!any && of_set) prefetcher_.end();
  };
  try {
    // One processor is for the program.
    if (!helpers_)
      helpers_ = std::make_unique<base::ThreadPool>(std::max(base::processors(), 2U) - 2);
    helpers_->parallel_for(helpers_->workers() + 1, load);
  } catch (const std::exception&) {  // no memory for helpers
    load(0, 0);
  }
  return true;
}

}  // namespace vellum::region
