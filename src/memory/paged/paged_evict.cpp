// Eviction: chunks leave memory; clean pages are forgotten, dirty pages go to the spill file.
//
// An eviction
// 1. claims a chunk: a thread that touches a page that is not there waits;
// 2. freezes it: nobody can change what is there;
// 3. compares private pages with their base copies;
// 4. lets everything go, or puts everything back as it was.
// Meanwhile the region's threads go on, except those that touch this chunk. A chunk stays while it
// is held, and while its base copies are newer than the source.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "format/records/page_diff.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/paged/paged_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// The most that one fault makes room for at once, so that a thread that waits for memory gets it
// soon.
constexpr std::size_t kRoomPages = 64;

std::size_t count_bits(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>(__builtin_popcountll(bits));
}

}  // namespace

// The clock over all chunks. It passes over parts of the region where nothing has ever been.
std::size_t PagedMemory::make_room(std::size_t pages) noexcept {
  constexpr std::size_t kTables = 64;  // looked at in one step
  const std::size_t chunks = chunks_of(size_bytes());
  const std::size_t step_chunks = kTables * kTablePages / chunk_pages();
  std::size_t freed = evict_first(pages);
  for (std::size_t visited = 0; visited < 4 * chunks && freed < pages; ++visited) {
    const std::size_t index = hand_.fetch_add(1, std::memory_order_relaxed) % chunks;
    const std::size_t table = index / step_chunks * kTables;
    if (index % step_chunks == 0 &&
        chunks_.next_touched(table, table + kTables) == table + kTables) {
      const std::size_t skip = std::min(step_chunks, chunks - index) - 1;
      hand_.fetch_add(skip, std::memory_order_relaxed);
      visited += skip;
    } else if (is_due(index)) {
      freed += evict(index);
    }
  }
  if (freed < pages) pager_->doubt();
  return freed;
}

// In the fault handler: a thread that brings pages in beyond the limit waits until as many can leave.
// While a commit is written, what it has found written must stay, so threads that write on would
// otherwise take memory without end. The wait ends with the commit, or when the pager has looked at
// all regions and found nothing that can leave: then the pages come in all the same. It is limited,
// in case the commit needs a page itself, as after a failure. A fault thread does not wait: it
// serves all others.
void PagedMemory::await_room(std::size_t pages) noexcept {
  constexpr int kMaxNaps = 1000;
  constexpr timespec kNap{0, 1'000'000};
  const std::uint32_t rounds = pager_->rounds();
  for (int naps = 0; naps < kMaxNaps && !options_.fault_thread; ++naps) {
    const std::size_t over = pager_->over(pages);
    if (over == 0) return;
    const std::size_t wanted = std::min(over, kRoomPages);
    if (!pager_->is_doubtful() && make_room(wanted) >= std::min(over, pages)) return;
    if (committing_.load() == 0 && pager_->rounds() - rounds >= 2) return;
    nanosleep(&kNap, nullptr);
  }
}

// Whether a chunk is there and has cooled down. Asking cools it.
bool PagedMemory::is_due(std::size_t index) noexcept {
  Chunk& chunk = chunks_[index];
  if (chunk.state.load(std::memory_order_relaxed) != Chunk::kPresent) return false;
  const std::uint8_t heat = chunk.heat.load(std::memory_order_relaxed);
  if (heat == 0) return true;
  chunk.heat.store(heat - 1, std::memory_order_relaxed);
  return false;
}

// Evicts chunks that leave before the clock over all chunks is asked.
std::size_t PagedMemory::evict_first(std::size_t pages) noexcept {
  std::size_t freed = 0;
  const std::size_t chunks = chunks_of(size_bytes());
  for (std::size_t index = 0;
       freed < pages && (leave_first_.take(index) || streams_.take_behind(index));) {
    if (index < chunks && !chunks_.is_missing(index)) freed += evict(index);
  }
  return freed;
}

std::size_t PagedMemory::evict(std::size_t index, Changed what) noexcept {
  if (chunks_.is_held(index)) return 0;
  std::size_t freed = 0;
  if (evictions_.enter() && chunks_.claim(index, Chunk::kPresent)) {
    if (!chunks_.is_held(index)) {  // pairs with hold()
      freed = evict_claimed(index, what);
    } else {
      chunks_.settle(index, 1, Chunk::kPresent);
    }
  }
  evictions_.leave();
  return freed;
}

std::size_t PagedMemory::evict_claimed(std::size_t index, Changed what) noexcept {
  if (options_.shared) return evict_shared(index);
  Frozen frozen;
  frozen.first = index * chunk_pages();
  frozen.count = pages_of(index);
  // Base copies that are newer than the source must stay; private copies that equal them need not.
  const bool newer = chunks_[index].newer.load() != 0;
  if (newer) what = Changed::all_stay;
  if (!worth_evicting(frozen, newer, what)) {
    chunks_.settle(index, 1, Chunk::kPresent);
    return 0;
  }
  const bool unused = working_set_ && is_unused(index);
  Scratch& scratch = scratches_.lock();
  frozen.old = scratch.old;
  frozen.place = scratch.free_place(chunk_bytes());
  std::size_t freed = 0;
  bool gone = false;
  if (freeze(frozen) == 0) freed = let_go(frozen, scratch.batch, what, gone);
  const bool moved = frozen.pages != nullptr && frozen.pages == frozen.place;
  if (moved && scratch.note_moved(count_bits(frozen.own))) {
    drop_pages(scratch.places, scratch.note_dropped() * chunk_bytes());
  }
  scratch.lock.unlock();
  if (gone) note_departure(index, unused);
  chunks_.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return freed;
}

// Also finds which pages have base copies.
bool PagedMemory::worth_evicting(Frozen& frozen, bool newer, Changed what) noexcept {
  frozen.base_copies = backing_.base_copies_in(frozen.first, frozen.count);
  if (frozen.count != 0) {
    frozen.bare = bare_.of(frozen.first, frozen.count) & ~frozen.base_copies;
    frozen.absent = absent_.of(frozen.first, frozen.count);
  }
  std::uint64_t own = 0;
  if (frozen.count == 0 || find_own(frozen.first, frozen.count, own) != 0) return false;
  if (own == 0) return !newer && (frozen.base_copies != 0 || traits_.zeros_take_memory);
  return what != Changed::spilled || base::coarse_monotonic_ns() >= spill_retry_ns_.load();
}

// Of a frozen chunk. Returns how many pages are free now.
std::size_t PagedMemory::let_go(Frozen& frozen, std::byte* room, Changed what,
                                bool& gone) noexcept {
  std::uint64_t changed = 0;
  gone = spill_changed(frozen, room, changed, what) && forget(frozen) == 0;
  const std::uint64_t dropped = gone ? frozen.own : frozen.own & ~changed;
  // Zeros counted when they came in.
  const bool told = options_.writable && traits_.zeros_take_memory;
  const std::size_t base_copies = count_bits(frozen.base_copies);
  const std::size_t zeros = gone && told ? frozen.count - base_copies : 0;
  add_private(-static_cast<std::int64_t>(count_bits(dropped) + zeros));
  if (!gone) undo_eviction(frozen, changed, what);
  return count_bits(dropped) + (gone ? base_copies : 0) + zeros;
}

// Finds the private pages that differ from the last commit and treats them as `what` says; a bare
// page counts as different. False: the chunk has to stay.
bool PagedMemory::spill_changed(const Frozen& frozen, std::byte* room, std::uint64_t& changed,
                                Changed what) noexcept {
  SpillFile::Batch batch(room);
  for (std::uint64_t rest = frozen.own; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(rest));
    const bool base_copy = (frozen.base_copies >> i & 1) != 0;
    const std::byte* const now = frozen.pages + i * kPageBytes;
    if ((frozen.bare >> i & 1) != 0) {
      changed |= 1ULL << i;
      if (what == Changed::spilled && spill_) batch.add_whole(frozen.first + i, now);
      continue;
    }
    format::PageDiff diff;
    format::diff_page(base_copy ? frozen.old + i * kPageBytes : nullptr, now, diff);
    if (diff.lines == 0) continue;
    changed |= 1ULL << i;
    if (what == Changed::spilled && spill_) batch.add(frozen.first + i, diff, now);
  }
  if (what == Changed::all_stay) return false;
  if (changed == 0) return true;
  if (what == Changed::stay) return false;
  const int error = spill_ ? spill_->put(batch) : ENOSPC;
  if (error == 0) return true;
  put_off_spilling(error);
  return false;
}

// A retry at each eviction would cost more than it gains. The first time, prints a line on standard
// error.
void PagedMemory::put_off_spilling(int error) noexcept {
  const std::int64_t retry_ns = base::coarse_monotonic_ns() + kNsPerSecond;
  if (spill_retry_ns_.exchange(retry_ns) != 0 || !spill_) return;
  char text[512];
  const int n = std::snprintf(text, sizeof text,
                              "vellum: the spill file in %s cannot take pages (%s): they stay in "
                              "memory, whatever the limit\n",
                              options_.spill_directory.c_str(), strerrordesc_np(error));
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text, std::min(static_cast<std::size_t>(n), sizeof text - 1));
}

void PagedMemory::undo_eviction(const Frozen& frozen, std::uint64_t changed,
                                Changed what) noexcept {
  if (thaw(frozen, changed) != 0) lose("no memory to put pages back");
  if (what != Changed::spilled || !spill_) return;
  for (std::uint64_t rest = changed; rest != 0; rest &= rest - 1) {
    spill_->drop(frozen.first + static_cast<std::size_t>(__builtin_ctzll(rest)));
  }
}

void PagedMemory::note_departure(std::size_t index, bool unused) noexcept {
  if (unused) working_set_->forget(index);
  const PageNumber first = index * chunk_pages();
  if (absent_.of(first, chunk_pages()) != 0) parts_.note(false);
  bare_.clear(first, bits_below(chunk_pages()));
  absent_.clear(first, bits_below(chunk_pages()));
  const std::uint32_t number = evicted_.fetch_add(1) + 1;
  chunks_[index].evicted_at.store(number == 0 ? 1 : number);
  present_chunks_.fetch_sub(1, std::memory_order_relaxed);
  counters_.count_departure(index);
  note_memory();
}

}  // namespace vellum::region
