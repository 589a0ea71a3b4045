// Wide loading: a version that is being read at many places comes in as a whole, by all processors.
//
// The read-ahead thread and its helpers take units in the order in which they lie. A thread that
// touches a missing chunk brings in the chunk's unit, unless another has taken it: so it decodes as
// well, and meets the next chunks of the unit without a fault. Records that several chunks need
// are decoded about once, because their chunks come in together.
//
// It is for versions only. A branch's pages come in as they are touched: most of them would have to
// be armed and compared for nothing. Nor is it for versions that keep a working set, which records
// what was touched, in order, and brings in that.
#include <algorithm>
#include <chrono>
#include <exception>

#include "base/threads/processors.hpp"
#include "memory/paged/paged_memory.hpp"

namespace vellum::region {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kUnitPages = kTablePages;
// The read-ahead thread serves other regions in between.
constexpr std::chrono::milliseconds kLoadStep{5};

}  // namespace

// REQUIRES: nothing has come in yet.
void PagedMemory::make_wide_load() {
  const auto& source = source_.shared();
  if (options_.writable || options_.keeps_working_set || source == nullptr) return;
  const std::size_t half = pager_->limit_bytes() / 2 / (kUnitPages * kPageBytes);
  wide_load_ =
      std::make_unique<BulkLoad>(chunks_of(size_bytes()), kUnitPages / chunk_pages(), half);
}

// In the fault handler: chunk `index` is missing.
void PagedMemory::start_bulk_load(std::size_t index) noexcept {
  if (wide_load_ == nullptr) return;
  HelperThread* const ahead = read_ahead_.load(std::memory_order_acquire);
  const Advice advice = chunks_[index].advice.load(std::memory_order_relaxed);
  if (ahead == nullptr || advice == Advice::random) return;
  if (wide_load_->note_fault()) ahead->wake();
  if (!wide_load_->begun()) return;
  const std::size_t unit = index * chunk_pages() / kUnitPages;
  if (options_.shared) map_full(unit * kUnitPages / chunk_pages(), kUnitPages / chunk_pages());
  if (!chunks_.is_missing(index)) return;
  if (has_room_for_unit() && wide_load_->take(unit)) load_unit(unit);
}

// Nothing leaves memory for a load, of this region or another.
bool PagedMemory::has_room_for_unit() noexcept {
  if (!pager_->is_doubtful() && pager_->lacking(kUnitPages) == 0) return true;
  wide_load_->end();
  return false;
}

// A chunk that cannot be read is left for the fault that needs it.
void PagedMemory::load_unit(std::size_t unit) noexcept {
  const std::size_t first = unit * kUnitPages / chunk_pages();
  if (options_.shared) return load_shared(first, kUnitPages / chunk_pages());
  for (std::size_t index = first; index < first + kUnitPages / chunk_pages(); ++index) {
    if (!worth_reading_ahead(index)) continue;
    store::ReadFailure ignored;
    fill(index, ignored);
  }
  backing_.unmap_alias(unit * kUnitPages, kUnitPages);
}

// Loads the next unit, or passes over a stretch of zeros.
bool PagedMemory::load_next_unit() noexcept {
  std::size_t unit = 0;
  if (!has_room_for_unit() || !wide_load_->next(unit)) return false;
  const PageNumber first = unit * kUnitPages, end = size_bytes() / kPageBytes;
  const std::size_t zero_pages = zeros_from(first, end - first);
  if (zero_pages < kUnitPages) {
    load_unit(unit);
  } else {
    wide_load_->skip_to(unit + zero_pages / kUnitPages);
  }
  return true;
}

// A step of the read-ahead thread: of the last use's working set, then of the load. Its helpers live
// as long as there is something to bring in. False: there is nothing.
bool PagedMemory::load_step() noexcept {
  if (options_.writable) return prefetch_step();
  const bool of_set = working_set_ && working_set_->any_wanted();
  const bool widely = wide_load_ != nullptr && wide_load_->begun();
  // Of the readers that share a version, one brings in what nobody has asked for yet.
  if (!of_set && (!widely || (options_.shared && !options_.shared->is_loader()))) {
    if (options_.shared) options_.shared->resign();
    loaders_.reset();
    return false;
  }
  const auto until = steady_clock::now() + kLoadStep;
  const auto load = [&](std::size_t, std::size_t) {
    bool any = true;
    while (any && steady_clock::now() < until) any = of_set ? prefetch_step() : load_next_unit();
    if (!any && of_set) working_set_->end();
  };
  try {
    // One processor is for the program.
    if (!loaders_)
      loaders_ = std::make_unique<base::ThreadPool>(std::max(base::processors(), 2U) - 2);
    loaders_->parallel_for(loaders_->workers() + 1, load);
  } catch (const std::exception&) {  // no memory for helpers
    load(0, 0);
  }
  return true;
}

}  // namespace vellum::region
