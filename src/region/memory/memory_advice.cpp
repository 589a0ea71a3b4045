// The program's advice on its pages, and read-ahead by that advice or by the program's faults.
//
// Two threads bring in what a sequential reader will touch: the process's read-ahead thread and the
// reader itself. The reader does not wait for a chunk that the thread has claimed but takes the
// next one meanwhile, so both decompress all the time.
#include <algorithm>

#include "region/memory/memory.hpp"
#include "region/memory/memory_no_read_ahead.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kMostAheadBytes = 2u << 20;
constexpr std::size_t kLimitShare = 16;   // of the memory limit, for what is read ahead
constexpr std::size_t kMostWanted = 256;  // ranges

}  // namespace

void RegionMemory::advise(PageNumber first, std::size_t count, Advice advice) {
  switch (advice) {
    case Advice::normal:
    case Advice::sequential:
    case Advice::random:
      for (std::size_t i = chunk_of(first); i <= chunk_of(first + count - 1); ++i) {
        if (chunk(i).advice.load(std::memory_order_relaxed) == advice) continue;
        chunk(i).advice.store(advice, std::memory_order_relaxed);
      }
      return;
    case Advice::will_need:
      return want_chunks(first, count);
    case Advice::dont_need:
      return drop_chunks(first, count);
  }
}

// Takes half of the limit at most: more would take from itself.
void RegionMemory::want_chunks(PageNumber first, std::size_t count) {
  const std::size_t most = std::max<std::size_t>(pager_->limit_bytes() / 2 / chunk_bytes(), 1);
  const std::size_t begin = chunk_of(first), end = chunk_of(first + count - 1) + 1;
  {
    const std::lock_guard lock(wanted_mutex_);
    wanted_.push_back({begin, std::min(end, begin + most)});
    if (wanted_.size() > kMostWanted) wanted_.pop_front();
    join_read_ahead();
  }
  if (ReadAhead* const ahead = read_ahead_.load()) ahead->wake();
}

// REQUIRES: wanted_mutex_ is held; stop_service() does not run meanwhile.
void RegionMemory::join_read_ahead() noexcept {
  if (read_ahead_.load() != nullptr) return;
  ReadAhead& ahead = ReadAhead::of_process();
  if (ahead.join(*this)) read_ahead_.store(&ahead);
}

void RegionMemory::drop_chunks(PageNumber first, std::size_t count) {
  const PageNumber end = first + count;
  const std::size_t begin_chunk = chunk_of(first + chunk_pages() - 1);
  // The region's end may cut its last chunk.
  const std::size_t end_chunk =
      end * kPageBytes >= size_bytes() ? chunks_of(size_bytes()) : end / chunk_pages();
  std::size_t staying = 0;  // chunks that stay, just before this one
  for (std::size_t index = begin_chunk; index < end_chunk; ++index) {
    chunk(index).heat.store(0, std::memory_order_relaxed);
    if (!chunk_missing(index)) evict(index, Changed::stay);
    if (!chunk_missing(index)) {
      ++staying;
      continue;
    }
    leave_first_.add(index - staying, staying);
    staying = 0;
  }
  if (begin_chunk < end_chunk) leave_first_.add(end_chunk - staying, staying);
}

// Evicts chunks that leave before the clock over all chunks is asked.
std::size_t RegionMemory::evict_first(std::size_t pages) noexcept {
  std::size_t freed = 0;
  const std::size_t chunks = chunks_of(size_bytes());
  for (std::size_t index = 0;
       freed < pages && (leave_first_.take(index) || streams_.take_behind(index));) {
    if (index < chunks && !chunk_missing(index)) freed += evict(index);
  }
  return freed;
}

std::size_t RegionMemory::most_ahead() const noexcept {
  return std::min(kMostAheadBytes, pager_->limit_bytes() / kLimitShare) / chunk_bytes();
}

bool RegionMemory::holds_nothing(PageNumber page) const noexcept {
  const std::size_t index = chunk_of(page);
  if (kernel_pages_ || !chunk_missing(index)) return false;
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = std::min<std::size_t>(chunk_pages(), size_bytes() / kPageBytes - first);
  if (spill_ && spill_->held_in(first, pages) != 0) return false;
  return zeros_from(first, pages) == pages;
}

std::size_t RegionMemory::untouched_zeros(PageNumber first, std::size_t limit) const noexcept {
  if (kernel_pages_ || limit == 0) return 0;
  std::size_t table = first / kTablePages;
  const std::size_t end = (first + limit - 1) / kTablePages + 1;
  while (table < end) {
    const std::uint64_t word = touched_word(table).load(std::memory_order_acquire) >> (table % 64);
    if ((word & 1) != 0) break;
    const auto free = word == 0 ? 64 : static_cast<std::size_t>(__builtin_ctzll(word));
    table += std::min<std::size_t>(free, 64 - table % 64);
  }
  const PageNumber touched =
      std::min<PageNumber>(std::min(table, end) * kTablePages, first + limit);
  return touched > first ? zeros_from(first, static_cast<std::size_t>(touched - first)) : 0;
}

// Zeros come in by 2 MiB anyway, and count as memory.
bool RegionMemory::worth_reading_ahead(std::size_t index) const noexcept {
  if (index >= chunks_of(size_bytes()) || !chunk_missing(index)) return false;
  if (chunk(index).advice.load(std::memory_order_relaxed) == Advice::random) return false;
  return !holds_nothing(index * chunk_pages());
}

// Runs in the fault handler, before chunk `index` is filled. A chunk that cannot be read is left
// for the fault that needs it.
void RegionMemory::read_ahead_of(std::size_t index) noexcept {
  ReadAhead* const ahead = read_ahead_.load(std::memory_order_acquire);
  const Advice advice = chunk(index).advice.load(std::memory_order_relaxed);
  if (ahead == nullptr || advice == Advice::random) return;
  auto window = streams_.note_fault(index, advice == Advice::sequential, most_ahead());
  if (window.empty()) return;
  ahead->wake();
  store::ReadFailure ignored;
  while (!window.empty() && chunk(index).state.load() == kClaimed) {
    if (const std::size_t next = window.take(); worth_reading_ahead(next)) fill(next, ignored);
  }
}

// Read-ahead is dispensable: it waits neither for chunks nor for memory.
bool RegionMemory::make_room_ahead() noexcept {
  if (pager_->is_doubtful()) return false;
  const std::size_t lacking = pager_->lacking(chunk_pages());
  return lacking == 0 || make_room(lacking) >= lacking;
}

bool RegionMemory::next_wanted(std::size_t& index) noexcept {
  const std::lock_guard lock(wanted_mutex_);
  const std::size_t chunks = chunks_of(size_bytes());
  while (!wanted_.empty()) {
    auto& window = wanted_.front();
    while (!window.empty() && window.first < chunks && !chunk_missing(window.first)) ++window.first;
    if (!window.empty() && window.first < chunks) {
      index = window.first++;
      return true;
    }
    wanted_.pop_front();
  }
  return false;
}

bool RegionMemory::read_ahead_step() noexcept {
  reading_ahead_.store(1);  // pairs with NoReadAhead
  bool any = false;
  if (read_ahead_stopped_.load() == 0) {
    std::size_t index = 0;
    store::ReadFailure ignored;
    if (streams_.next(index)) {
      any = true;
      if (worth_reading_ahead(index) && make_room_ahead()) fill(index, ignored);
    } else if (next_wanted(index)) {
      any = true;
      if (make_room_ahead()) fill(index, ignored);
    } else {
      any = prefetch_step();
    }
  }
  reading_ahead_.store(0);
  return any;
}

}  // namespace vellum::region
