#include "memory/paged/reclaimer.hpp"

#include <algorithm>
#include <cassert>

#include "memory/paged/memory_account.hpp"

namespace vellum::region {
namespace {

using namespace std::chrono_literals;

constexpr auto kStep = 1ms;   // of work at a time,
constexpr auto kPause = 4ms;  // and then this pause

// Base copies grow when the last commit has added more than this share of them.
constexpr std::int64_t kShareOfNew = 64;
constexpr std::size_t kMaxPages = 128;  // dropped at once: writers wait as long

ReclaimPolicy& process_policy() noexcept {
  static ReclaimPolicy policy;
  return policy;
}

}  // namespace

ReclaimPolicy ReclaimPolicy::of_process() noexcept { return process_policy(); }
void ReclaimPolicy::set(const ReclaimPolicy& policy) noexcept { process_policy() = policy; }

Reclaimer::Reclaimer(PagedState& state, EngineHooks& engine, MemoryAccount& account)
    : state_(state),
      engine_(engine),
      account_(account),
      schedule_(state.options.reclaim_policy.value_or(ReclaimPolicy::of_process())) {}

void Reclaimer::note_dirty(const std::vector<PageNumber>& pages) noexcept {
  assert(std::is_sorted(pages.begin(), pages.end()));
  const std::uint32_t scan = scans_.fetch_add(1) + 1;
  base_copies_at_scan_.store(state_.backing.base_copy_pages(), std::memory_order_relaxed);
  if (pages.empty() || !state_.options.gives_back_copies) return;
  std::size_t noted = SIZE_MAX;
  for (const PageNumber page : pages) {
    state_.chunks[state_.chunk_of(page)].scanned_at.store(static_cast<std::uint8_t>(scan),
                                                          std::memory_order_relaxed);
    const std::size_t table = page / kTablePages;
    if (table == noted) continue;
    state_.chunks.note_written(table);
    noted = table;
  }
  found_dirty_.fetch_add(static_cast<std::int64_t>(pages.size()), std::memory_order_relaxed);
  commit_events_.fetch_add(1);
  if (state_.options.reclaim_clock) return;
  if (thread_ == nullptr) {
    HelperThread& thread = HelperThread::reclaim_thread();
    if (thread.join(*this)) thread_ = &thread;
  }
  if (thread_ != nullptr) thread_->wake();
}

void Reclaimer::note_commit_end() noexcept {
  if (thread_ == nullptr && !state_.options.reclaim_clock) return;
  commit_events_.fetch_add(1);
  if (thread_ != nullptr) thread_->wake();
}

void Reclaimer::stop() noexcept {
  if (thread_ != nullptr) thread_->leave(*this);
  thread_ = nullptr;
}

bool Reclaimer::grows() const noexcept {
  const std::int64_t pages = state_.backing.base_copy_pages();
  return pages - base_copies_at_scan_.load(std::memory_order_relaxed) > pages / kShareOfNew;
}

std::optional<std::chrono::milliseconds> Reclaimer::step() noexcept {
  if (!schedule_.is_running()) {
    const ReclaimSchedule::Observation seen{now(), commit_events_.load(),
                                            state_.backing.base_copy_pages(), grows(),
                                            state_.pager->limit_bytes()};
    const auto pause = schedule_.start_pass(
        seen, [&] { return found_dirty_.exchange(0, std::memory_order_relaxed); });
    if (pause) return *pause == 0ms ? std::nullopt : pause;
    stage_ = PassStage::count;
    table_ = 0;
    counted_ = 0;
  }
  schedule_.note_events(commit_events_.load());
  const Time end = now() + kStep;
  while (schedule_.is_running() && now() < end) {
    if (stage_ == PassStage::count) {
      count_next_table();
    } else {
      drop_from_next_table();
    }
  }
  return schedule_.is_urgent(state_.backing.base_copy_pages()) ? 0ms : kPause;
}

// A commit that notes the table between the two steps makes it count again.
void Reclaimer::count_next_table() noexcept {
  const std::size_t tables = state_.table_count();
  table_ = state_.chunks.next_written(table_, tables);
  if (table_ >= tables) {
    schedule_.note_counted(counted_, state_.backing.base_copy_pages(), now());
    stage_ = PassStage::drop;
    table_ = 0;
    return;
  }
  state_.chunks.forget_written(table_);
  const PageNumber first = table_ * kTablePages;
  const std::size_t pages = std::min<std::size_t>(kTablePages, state_.size_pages() - first);
  const std::int64_t own = engine_.count_own(first, pages);
  if (own != 0) state_.chunks.note_written(table_);
  counted_ += std::max<std::int64_t>(own, 0);
  ++table_;
}

void Reclaimer::drop_from_next_table() noexcept {
  const std::size_t tables = state_.table_count();
  table_ = state_.chunks.next_written(table_, tables);
  if (table_ >= tables || !schedule_.goes_on(state_.backing.base_copy_pages()) ||
      !engine_.may_drop_copies()) {
    account_.measure();  // the pager did not count all dropped pages
    schedule_.end_pass(now());
    return;
  }
  const std::size_t table_chunks = kTablePages / state_.chunk_pages();
  const std::size_t begin = table_ * table_chunks;
  const std::size_t end = std::min(begin + table_chunks, state_.chunk_count());
  const std::size_t most = std::max<std::size_t>(kMaxPages / state_.chunk_pages(), 1);
  for (std::size_t index = begin; index < end;) {
    std::size_t count = 0;
    while (count < most && index + count < end && is_idle(index + count)) ++count;
    if (count != 0) drop_copies(index, count);
    index += std::max<std::size_t>(count, 1);
  }
  ++table_;
}

// Whether the chunk is present, and its private copies are likely to equal their base copies.
bool Reclaimer::is_idle(std::size_t index) noexcept {
  const Chunk& chunk = state_.chunks[index];
  if (!state_.chunks.is_present(index) || state_.chunks.is_held(index)) return false;
  const auto last_scan = static_cast<std::uint8_t>(scans_.load());
  if (!schedule_.is_quiet() && chunk.scanned_at.load(std::memory_order_relaxed) == last_scan)
    return false;
  const PageNumber first = index * state_.chunk_pages();
  const std::size_t pages = state_.pages_of(index);
  if (pages == 0) return false;
  if (found_by_engine_.load(std::memory_order_relaxed)) return engine_.is_unwritten(first, pages);
  std::uint64_t own = 0;  // nothing is armed: only the comparison in drop_equal() decides
  return engine_.find_own(first, pages, own) == 0 && own != 0;
}

// The gates are closed while a scan runs, while pages are put back and while the region shrinks.
void Reclaimer::drop_copies(std::size_t index, std::size_t count) noexcept {
  const bool may_evict = state_.evictions.enter(), may_read_ahead = state_.reading_ahead.enter();
  const bool open = may_evict && may_read_ahead;
  std::size_t claimed = 0;
  while (open && claimed < count && state_.chunks.claim(index + claimed, Chunk::kPresent)) {
    ++claimed;
    if (!state_.chunks.is_held(index + claimed - 1)) continue;  // pairs with ChunkTable::hold()
    state_.chunks.settle(index + --claimed, 1, Chunk::kPresent);
    break;
  }
  const PageNumber first = index * state_.chunk_pages();
  const PageNumber stop =
      std::min<PageNumber>((index + claimed) * state_.chunk_pages(), state_.size_pages());
  if (claimed != 0 && first < stop) {
    schedule_.note_dropped(static_cast<std::int64_t>(engine_.drop_equal(first, stop - first)));
  }
  state_.chunks.settle(index, claimed, Chunk::kPresent);
  state_.reading_ahead.leave();
  state_.evictions.leave();
}

}  // namespace vellum::region
