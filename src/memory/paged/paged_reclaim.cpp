// Private copies that equal their base copies go back in the background.
//
// A written page is held twice: as the program's private copy and as the base copy that a commit
// has brought up to it. Where the program does not write the page again, the private copy is of no
// use. But the next write to the page costs more when it has to be copied again (2 us, otherwise
// 0.8). So a helper thread (memory/paging/helper_thread.hpp) makes passes at two times:
//
// - when there has been no commit for a while: over all chunks;
// - while commits record many new pages, as they do when data is loaded: over the chunks of which
//   the last commit found no page written.
//
// A pass first counts private pages, by 2 MiB ranges in which a commit has found any. Few are left
// alone: they take little, and are likely to be written again. Then it gives back what rests. Pages
// of zeros that nobody has written go the same way. A region that takes little of the memory limit
// keeps everything. Beside commits, a pass takes a small share of a processor, unless private pages
// take much of the memory.
#include <algorithm>
#include <chrono>

#include "memory/paged/paged_memory.hpp"
#include "memory/paged/reclaim_policy.hpp"

namespace vellum::region {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kStep = 1ms;   // of work at a time,
constexpr auto kPause = 4ms;  // and then this pause

// New pages of the last commit, as a share of all base copies, that make it one of many.
constexpr std::int64_t kShareOfNew = 64;
// With so many, a pass makes no pauses.
constexpr std::int64_t kUrgentShare = 4;
constexpr std::size_t kMaxPages = 128;  // given back at once: writers wait as long

ReclaimPolicy& policy() noexcept {
  static ReclaimPolicy policy;
  return policy;
}

}  // namespace

void ReclaimPolicy::set(const ReclaimPolicy& wanted) noexcept { policy() = wanted; }

// Runs in a commit, after a scan.
void PagedMemory::note_found_written(const std::vector<PageNumber>& pages) noexcept {
  const std::uint32_t scan = scans_.fetch_add(1) + 1;
  base_copies_at_scan_.store(backing_.base_copy_pages(), std::memory_order_relaxed);
  if (pages.empty() || !options_.gives_back_copies) return;
  std::size_t noted = SIZE_MAX;
  for (const PageNumber page : pages) {
    chunks_[chunk_of(page)].scanned_at.store(static_cast<std::uint8_t>(scan),
                                             std::memory_order_relaxed);
    const std::size_t table = page / kTablePages;
    if (table == noted) continue;
    chunks_.note_written(table);
    noted = table;
  }
  found_written_.fetch_add(static_cast<std::int64_t>(pages.size()), std::memory_order_relaxed);
  commit_events_.fetch_add(1);
  if (reclaimer_ == nullptr) {
    HelperThread& thread = HelperThread::that_reclaims();
    if (thread.join(help_reclaim_)) reclaimer_ = &thread;
  }
  if (reclaimer_ != nullptr) reclaimer_->wake();
}

void PagedMemory::note_commit_end() noexcept {
  if (reclaimer_ == nullptr) return;
  commit_events_.fetch_add(1);
  reclaimer_->wake();
}

// Whether the last commit has recorded many pages that were new.
bool PagedMemory::grows() const noexcept {
  const std::int64_t now = backing_.base_copy_pages();
  return now - base_copies_at_scan_.load(std::memory_order_relaxed) > now / kShareOfNew;
}

bool PagedMemory::too_many_private(std::int64_t pages) const noexcept {
  return pages > policy().few_pages &&
         pages > backing_.base_copy_pages() / policy().share_of_base_copies;
}

// Of the memory limit, with so many private pages.
bool PagedMemory::takes_much(std::int64_t pages) const noexcept {
  const auto held = static_cast<std::uint64_t>(backing_.base_copy_pages() + pages) * kPageBytes;
  return held > pager_->limit_bytes() / policy().share_of_limit;
}

std::optional<std::chrono::milliseconds> PagedMemory::reclaim() noexcept {
  Pass& pass = pass_;
  if (pass.stage == Pass::Stage::none) {
    if (const auto pause = pause_before_pass()) return *pause == 0ms ? std::nullopt : pause;
  }
  if (commit_events_.load() != pass.events) pass.quiet = false;
  const auto end = Clock::now() + kStep;
  while (pass.stage != Pass::Stage::none && Clock::now() < end) {
    if (pass.stage == Pass::Stage::count) {
      count_next_table();
    } else {
      reclaim_next_table();
    }
  }
  const bool urgent = pass.quiet || pass.left > backing_.base_copy_pages() / kUrgentShare;
  return urgent ? 0ms : kPause;
}

// None: a pass has begun. 0: nothing is to be done before the next commit.
std::optional<std::chrono::milliseconds> PagedMemory::pause_before_pass() noexcept {
  Pass& pass = pass_;
  const auto now = Clock::now();
  if (const std::uint32_t events = commit_events_.load(); events != pass.events) {
    pass.events = events;
    pass.changed = now;
    pass.done_quiet = false;
  }
  if (pass.done_quiet) return 0ms;
  pass.quiet = now - pass.changed >= policy().quiet;
  if (!pass.quiet && (!grows() || now - pass.ended < policy().between_passes))
    return policy().between_passes;
  pass.done_quiet = pass.quiet;
  const std::int64_t found = found_written_.exchange(0, std::memory_order_relaxed);
  pass.left += found;
  if (!too_many_private(pass.left) || !takes_much(pass.left)) {
    return pass.quiet ? 0ms : policy().between_passes;
  }
  pass.stage = Pass::Stage::count;
  pass.table = 0;
  pass.counted = 0;
  return std::nullopt;
}

// A commit that notes the table between the two steps makes it count again.
void PagedMemory::count_next_table() noexcept {
  Pass& pass = pass_;
  const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
  pass.table = chunks_.next_written(pass.table, tables);
  if (pass.table >= tables) {
    pass.left = pass.counted;
    pass.table = 0;
    const bool many = too_many_private(pass.left);
    pass.stage = many ? Pass::Stage::reclaim : Pass::Stage::none;
    if (!many) pass.ended = Clock::now();
    return;
  }
  chunks_.forget_written(pass.table);
  const PageNumber first = pass.table * kTablePages;
  const std::size_t pages = std::min<std::size_t>(kTablePages, size_bytes() / kPageBytes - first);
  const std::int64_t own = count_own(first, pages);
  if (own != 0) chunks_.note_written(pass.table);
  pass.counted += std::max<std::int64_t>(own, 0);
  ++pass.table;
}

void PagedMemory::reclaim_next_table() noexcept {
  Pass& pass = pass_;
  const std::size_t tables = (size_bytes() + kTableBytes - 1) / kTableBytes;
  pass.table = chunks_.next_written(pass.table, tables);
  if (pass.table >= tables || !too_many_private(2 * pass.left) || !may_return_copies()) {
    pass.stage = Pass::Stage::none;
    measure();  // not all that went was known to the pager
    pass.ended = Clock::now();
    return;
  }
  const std::size_t table_chunks = kTablePages / chunk_pages();
  const std::size_t begin = pass.table * table_chunks;
  const std::size_t end = std::min(begin + table_chunks, chunks_of(size_bytes()));
  const std::size_t most = std::max<std::size_t>(kMaxPages / chunk_pages(), 1);
  for (std::size_t index = begin; index < end;) {
    std::size_t count = 0;
    while (count < most && index + count < end && rests(index + count)) ++count;
    if (count != 0) return_copies(index, count);
    index += std::max<std::size_t>(count, 1);
  }
  ++pass.table;
}

bool PagedMemory::rests(std::size_t index) noexcept {
  const Chunk& chunk = chunks_[index];
  if (!chunks_.is_present(index) || chunks_.is_held(index)) return false;
  const auto last_scan = static_cast<std::uint8_t>(scans_.load());
  if (!pass_.quiet && chunk.scanned_at.load(std::memory_order_relaxed) == last_scan) return false;
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  if (pages == 0) return false;
  if (!found_by_others_.load(std::memory_order_relaxed)) return is_unwritten(first, pages);
  std::uint64_t own = 0;  // nothing is armed, so drop_equal() alone tells
  return find_own(first, pages, own) == 0 && own != 0;
}

// Of chunks that rest. The gates are closed while a scan passes, while pages are put back and while
// the region shrinks.
void PagedMemory::return_copies(std::size_t index, std::size_t count) noexcept {
  const bool may_evict = evictions_.enter(), may_read_ahead = reading_ahead_.enter();
  const bool open = may_evict && may_read_ahead;
  std::size_t claimed = 0;
  while (open && claimed < count && chunks_.claim(index + claimed, Chunk::kPresent)) {
    ++claimed;
    if (!chunks_.is_held(index + claimed - 1)) continue;  // pairs with hold()
    chunks_.settle(index + --claimed, 1, Chunk::kPresent);
    break;
  }
  const PageNumber first = index * chunk_pages(), end = size_bytes() / kPageBytes;
  const PageNumber stop = std::min<PageNumber>((index + claimed) * chunk_pages(), end);
  if (claimed != 0 && first < stop) {
    pass_.left -= static_cast<std::int64_t>(drop_equal(first, stop - first));
  }
  chunks_.settle(index, claimed, Chunk::kPresent);
  reading_ahead_.leave();
  evictions_.leave();
}

}  // namespace vellum::region
