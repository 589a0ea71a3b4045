#include "memory/paged/evictor.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "format/records/page_diff.hpp"
#include "memory/kernel/kernel.hpp"
#include "memory/paged/fill/prefetcher.hpp"
#include "memory/paged/fill/version_sharing.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// One fault makes at most this much room at once, so that a waiting thread gets memory soon.
constexpr std::size_t kRoomPages = 64;

std::size_t count_bits(std::uint64_t bits) noexcept {
  return static_cast<std::size_t>(__builtin_popcountll(bits));
}

}  // namespace

std::size_t Evictor::make_room(std::size_t pages) noexcept {
  std::size_t freed = evict_hinted(pages);
  EvictionPolicy::ClockSweep sweep{state_.chunk_count()};
  for (std::size_t index = 0; freed < pages && state_.eviction.next_cold(sweep, index);) {
    freed += evict(index);
  }
  if (freed < pages) state_.pager->doubt();
  return freed;
}

// In the fault handler: a thread that fills pages beyond the limit waits until as many can be
// evicted. While a commit is written, the dirty pages that it has found must stay, and threads that
// keep writing would otherwise take memory without end. The wait ends with the commit, or when the
// pager has balanced all regions and found nothing to evict: then the pages are filled all the
// same. It is limited, in case the commit needs a page itself, as after a failure. A fault thread
// does not wait: it serves all others.
void Evictor::await_room(std::size_t pages) noexcept {
  constexpr int kMaxNaps = 1000;
  constexpr timespec kNap{0, 1'000'000};
  const std::uint32_t rounds = state_.pager->rounds();
  for (int naps = 0; naps < kMaxNaps && !state_.options.fault_thread; ++naps) {
    const std::size_t over = state_.pager->over(pages);
    if (over == 0) return;
    const std::size_t wanted = std::min(over, kRoomPages);
    if (!state_.pager->is_doubtful() && make_room(wanted) >= std::min(over, pages)) return;
    if (committing_.load() == 0 && state_.pager->rounds() - rounds >= 2) return;
    nanosleep(&kNap, nullptr);
  }
}

// Evicts chunks that are chosen before the clock hand.
std::size_t Evictor::evict_hinted(std::size_t pages) noexcept {
  std::size_t freed = 0;
  const std::size_t chunks = state_.chunk_count();
  for (std::size_t index = 0; freed < pages && state_.eviction.take_hinted(index);) {
    if (index < chunks && !state_.chunks.is_missing(index)) freed += evict(index);
  }
  return freed;
}

std::size_t Evictor::evict(std::size_t index, WhenDirty when_dirty) noexcept {
  if (state_.chunks.is_held(index)) return 0;
  std::size_t freed = 0;
  if (state_.evictions.enter() && state_.chunks.claim(index, Chunk::kPresent)) {
    if (!state_.chunks.is_held(index)) {  // pairs with ChunkTable::hold()
      freed = evict_claimed(index, when_dirty);
    } else {
      state_.chunks.settle(index, 1, Chunk::kPresent);
    }
  }
  state_.evictions.leave();
  return freed;
}

std::size_t Evictor::evict_claimed(std::size_t index, WhenDirty when_dirty) noexcept {
  if (state_.options.shared) return sharing_.evict(index);
  assert(state_.chunks[index].state.load(std::memory_order_relaxed) == Chunk::kClaimed);
  FrozenChunk frozen;
  frozen.first = index * state_.chunk_pages();
  frozen.count = state_.pages_of(index);
  // Base copies that are newer than the source must stay; private copies that equal them need not.
  const bool newer = state_.chunks[index].newer.load() != 0;
  if (newer) when_dirty = WhenDirty::all_stay;
  if (!worth_evicting(frozen, newer, when_dirty)) {
    state_.chunks.settle(index, 1, Chunk::kPresent);
    return 0;
  }
  const bool unused = state_.working_set && prefetcher_.is_unused(index);
  Scratch& scratch = state_.scratches.lock();
  frozen.old = scratch.old;
  frozen.place = scratch.free_place(state_.chunk_bytes());
  std::size_t freed = 0;
  bool gone = false;
  if (engine_.freeze(frozen) == 0) freed = finish_eviction(frozen, scratch.batch, when_dirty, gone);
  const bool moved = frozen.pages != nullptr && frozen.pages == frozen.place;
  if (moved && scratch.note_moved(count_bits(frozen.own))) {
    drop_pages(scratch.places, scratch.note_dropped() * state_.chunk_bytes());
  }
  scratch.lock.unlock();
  if (gone) state_.note_departure(index, unused);
  state_.chunks.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return freed;
}

// Also finds which pages have base copies.
bool Evictor::worth_evicting(FrozenChunk& frozen, bool newer, WhenDirty when_dirty) noexcept {
  frozen.base_copies = state_.backing.base_copies_in(frozen.first, frozen.count);
  if (frozen.count != 0) {
    frozen.bare = state_.bare.of(frozen.first, frozen.count) & ~frozen.base_copies;
    frozen.absent = state_.absent.of(frozen.first, frozen.count);
  }
  std::uint64_t own = 0;
  if (frozen.count == 0 || engine_.find_own(frozen.first, frozen.count, own) != 0) return false;
  if (own == 0) return !newer && (frozen.base_copies != 0 || state_.traits.zeros_take_memory);
  return when_dirty != WhenDirty::spill || base::coarse_monotonic_ns() >= spill_retry_ns_.load();
}

// Spills and forgets a frozen chunk, or restores it. `gone`: it is forgotten. Returns how many
// pages are free now.
std::size_t Evictor::finish_eviction(FrozenChunk& frozen, std::byte* room, WhenDirty when_dirty,
                                     bool& gone) noexcept {
  std::uint64_t changed = 0;
  gone = spill_changed(frozen, room, changed, when_dirty) && engine_.forget(frozen) == 0;
  const std::uint64_t dropped = gone ? frozen.own : frozen.own & ~changed;
  // Zeros counted when they were filled.
  const bool zeros_counted = state_.options.writable && state_.traits.zeros_take_memory;
  const std::size_t base_copies = count_bits(frozen.base_copies);
  const std::size_t zeros = gone && zeros_counted ? frozen.count - base_copies : 0;
  state_.add_private(-static_cast<std::int64_t>(count_bits(dropped) + zeros));
  if (!gone) undo_eviction(frozen, changed, when_dirty);
  return count_bits(dropped) + (gone ? base_copies : 0) + zeros;
}

// Finds the private pages that differ from the last commit, and spills them if `when_dirty` says
// so; a bare page counts as different. False: the chunk stays.
bool Evictor::spill_changed(const FrozenChunk& frozen, std::byte* room, std::uint64_t& changed,
                            WhenDirty when_dirty) noexcept {
  SpillFile::Batch batch(room);
  for (std::uint64_t rest = frozen.own; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(rest));
    const bool base_copy = (frozen.base_copies >> i & 1) != 0;
    const std::byte* const now = frozen.pages + i * kPageBytes;
    if ((frozen.bare >> i & 1) != 0) {
      changed |= 1ULL << i;
      if (when_dirty == WhenDirty::spill && state_.spill) batch.add_whole(frozen.first + i, now);
      continue;
    }
    format::PageDiff diff;
    format::diff_page(base_copy ? frozen.old + i * kPageBytes : nullptr, now, diff);
    if (diff.lines == 0) continue;
    changed |= 1ULL << i;
    if (when_dirty == WhenDirty::spill && state_.spill) batch.add(frozen.first + i, diff, now);
  }
  if (when_dirty == WhenDirty::all_stay) return false;
  if (changed == 0) return true;
  if (when_dirty == WhenDirty::stay) return false;
  const int error = state_.spill ? state_.spill->put(batch) : ENOSPC;
  if (error == 0) return true;
  put_off_spilling(error);
  return false;
}

// A retry at each eviction would cost more than it gains. The first failure prints a line on
// standard error.
void Evictor::put_off_spilling(int error) noexcept {
  const std::int64_t retry_ns = base::coarse_monotonic_ns() + kNsPerSecond;
  if (spill_retry_ns_.exchange(retry_ns) != 0 || !state_.spill) return;
  char text[512];
  const int n = std::snprintf(text, sizeof text,
                              "vellum: the spill file in %s cannot take pages (%s): they stay in "
                              "memory, whatever the limit\n",
                              state_.options.spill_directory.c_str(), strerrordesc_np(error));
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text, std::min(static_cast<std::size_t>(n), sizeof text - 1));
}

void Evictor::undo_eviction(const FrozenChunk& frozen, std::uint64_t changed,
                            WhenDirty when_dirty) noexcept {
  if (engine_.thaw(frozen, changed) != 0) state_.lose("no memory to restore pages");
  if (when_dirty != WhenDirty::spill || !state_.spill) return;
  for (std::uint64_t rest = changed; rest != 0; rest &= rest - 1) {
    state_.spill->drop(frozen.first + static_cast<std::size_t>(__builtin_ctzll(rest)));
  }
}

}  // namespace vellum::region
