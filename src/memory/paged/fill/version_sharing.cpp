#include "memory/paged/fill/version_sharing.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

#include "memory/paged/fill/chunk_filler.hpp"
#include "memory/paged/fill/prefetcher.hpp"

namespace vellum::region {
namespace {

using std::chrono::milliseconds;

// A reader that is killed while it fills a chunk wakes no waiter: waiters check the lock this
// often,
constexpr milliseconds kCheckLock{10};
// and read the chunk themselves after this time: the reader may have been stopped. It may have
// locked many chunks, so from then on they check the lock once, until one of the waits succeeds.
constexpr milliseconds kMaxWait{2000};

}  // namespace

VersionSharing::VersionSharing(PagedState& state, EngineHooks& engine, ChunkFiller& filler,
                               Prefetcher& prefetcher)
    : state_(state), engine_(engine), filler_(filler), prefetcher_(prefetcher) {
  const MemoryOptions& options = state.options;
  if (options.shared)
    origins_ = base::Reservation(options.capacity_bytes / options.chunk_bytes + 1);
}

bool VersionSharing::fill(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                          ChunkMapping mapping) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  assert(state_.chunks[index].state.load(std::memory_order_relaxed) == Chunk::kClaimed);
  const SharedWait state = await(index);
  ChunkOrigin from = ChunkOrigin::found;
  bool ok = true;
  int error = 0;
  if (state != SharedWait::full) {
    Scratch& scratch = state_.scratches.lock();
    {
      const LiveSourceReader source(state_.source);
      ok = source->try_read(first, state_.chunk_pages(), scratch.old, failure);
    }
    const bool put = ok && state == SharedWait::to_fill && may_fill() &&
                     shared().put(index, {scratch.old, state_.chunk_bytes()}) == 0;
    if (state == SharedWait::to_fill) shared().unlock(index);
    from = put ? ChunkOrigin::filled_here : ChunkOrigin::unshared;
    origin(index).store(from, std::memory_order_relaxed);
    if (ok && !put) error = place_unshared(index, pages, scratch.old);
    scratch.lock.unlock();
  }
  if (ok && from != ChunkOrigin::unshared) error = show(index, 1, from, mapping);
  if (error != 0) failure = {"no memory for the page", {}, first, error};
  ok = ok && error == 0;
  if (ok) state_.note_arrival(index, from == ChunkOrigin::unshared ? ChunkMapping::now : mapping);
  state_.chunks.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Chunks count before they are mapped, since a thread that accesses them continues at once. 0 or
// errno. REQUIRES: claimed.
int VersionSharing::show(std::size_t index, std::size_t count, ChunkOrigin from,
                         ChunkMapping mapping) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  const PageNumber end =
      std::min<PageNumber>((index + count) * state_.chunk_pages(), state_.size_pages());
  const auto pages = static_cast<std::int64_t>(end - first);
  for (std::size_t i = index; i < index + count; ++i)
    origin(i).store(from, std::memory_order_relaxed);
  add_counted(from, pages);
  const int error = mapping == ChunkMapping::by_touch ? 0 : engine_.map_present(first, end - first);
  if (error != 0) add_counted(from, -pages);
  return error;
}

int VersionSharing::place_unshared(std::size_t index, std::size_t pages,
                                   const std::byte* content) noexcept {
  const auto counted = static_cast<std::int64_t>(pages);
  add_counted(ChunkOrigin::unshared, counted);
  const int error = engine_.place_unshared(index * state_.chunk_pages(), pages, content);
  if (error != 0) add_counted(ChunkOrigin::unshared, -counted);
  return error;
}

// Waits until the chunk is full, or this region may fill it (and has locked it), or until kMaxWait.
VersionSharing::SharedWait VersionSharing::await(std::size_t index) noexcept {
  for (milliseconds waited{0};; waited += kCheckLock) {
    const bool locked = !shared().is_full(index) && shared().try_lock(index);
    if (shared().is_full(index)) {
      if (locked) shared().unlock(index);
      if (waited.count() != 0) impatient_.store(false, std::memory_order_relaxed);
      return shared().check(index) ? SharedWait::full : SharedWait::wrong;
    }
    if (locked) return SharedWait::to_fill;
    if (waited >= (impatient_.load(std::memory_order_relaxed) ? kCheckLock : kMaxWait)) break;
    shared().wait(index, kCheckLock);
  }
  impatient_.store(true, std::memory_order_relaxed);
  return SharedWait::late;
}

bool VersionSharing::may_fill() const noexcept {
  const auto half = static_cast<std::int64_t>(state_.pager->limit_bytes() / kPageBytes / 2);
  return state_.pager->used_pages() + static_cast<std::int64_t>(state_.chunk_pages()) <= half;
}

void VersionSharing::add_counted(ChunkOrigin from, std::int64_t pages) noexcept {
  if (from == ChunkOrigin::unshared && state_.traits.unshared_are_base_copies) return;
  auto& count = from == ChunkOrigin::unshared ? unshared_pages_ : shared_pages_;
  count.fetch_add(pages, std::memory_order_relaxed);
  state_.pager->add_pages(pages);
}

void VersionSharing::map_full(std::size_t index, std::size_t count) noexcept {
  const std::size_t end = std::min(index + count, state_.chunk_count());
  if (state_.pager->is_doubtful() || state_.pager->lacking(count * state_.chunk_pages()) != 0)
    return;
  while (index < end) {
    std::size_t run = 0;
    while (index + run < end && shared().is_full(index + run) &&
           state_.chunks.claim(index + run, Chunk::kMissing)) {
      ++run;
    }
    if (run != 0) map_run(index, run);
    index += run + 1;
  }
}

// REQUIRES: claimed and full. A chunk with wrong content is left to the fault that needs it.
void VersionSharing::map_run(std::size_t index, std::size_t count) noexcept {
  const std::size_t right = shared().check(index, count);
  if (right != 0) state_.chunks.touch(index * state_.chunk_pages(), right * state_.chunk_pages());
  const bool shown = right != 0 && show(index, right, ChunkOrigin::found, ChunkMapping::now) == 0;
  for (std::size_t i = index; shown && i < index + right; ++i) state_.note_arrival(i);
  state_.chunks.settle(index, right, shown ? Chunk::kPresent : Chunk::kMissing);
  state_.chunks.settle(index + right, count - right, Chunk::kMissing);
}

void VersionSharing::load(std::size_t index, std::size_t count) noexcept {
  count = std::min(count, state_.chunk_count() - index);
  map_full(index, count);
  if (!shared().try_lock(index, count)) return;
  for (std::size_t i = index; i < index + count; ++i) {
    store::ReadFailure ignored;
    if (state_.worth_reading_ahead(i)) filler_.fill(i, ignored);
  }
  shared().unlock(index, count);
}

void VersionSharing::load_range(PageNumber first, std::size_t count) noexcept {
  const std::size_t unit_chunks = kTablePages / state_.chunk_pages();
  const PageNumber end = first + count;
  for (PageNumber at = (first + kTablePages - 1) / kTablePages * kTablePages;
       at + kTablePages <= end; at += kTablePages) {
    load(at / state_.chunk_pages(), unit_chunks);
  }
}

// The chunk was filled just now, or was prefetched and is not mapped, or the kernel or the program
// has removed the page from the page table.
int VersionSharing::show_again(std::size_t index) noexcept {
  if (!state_.chunks.claim(index, Chunk::kPresent)) return 0;
  int error = 0;
  bool gone = false;
  if (origin(index).load(std::memory_order_relaxed) == ChunkOrigin::unshared) {
    gone = take_out(index);  // and is filled again
  } else {
    error = engine_.map_present(index * state_.chunk_pages(), state_.pages_of(index));
  }
  state_.chunks.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return error;
}

std::size_t VersionSharing::evict(std::size_t index) noexcept {
  assert(state_.chunks[index].state.load(std::memory_order_relaxed) == Chunk::kClaimed);
  const ChunkOrigin from = origin(index).load(std::memory_order_relaxed);
  const std::size_t pages = state_.pages_of(index);
  const bool stays = from == ChunkOrigin::zeros || from == ChunkOrigin::filled_here || pages == 0;
  const bool gone = !stays && take_out(index);
  state_.chunks.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return gone ? pages : 0;
}

bool VersionSharing::take_out(std::size_t index) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  const std::size_t pages = state_.pages_of(index);
  const bool unused = state_.working_set && prefetcher_.is_unused(index);
  const ChunkOrigin from = origin(index).load(std::memory_order_relaxed);
  const int error = from == ChunkOrigin::unshared ? engine_.remove_unshared(first, pages)
                                                  : engine_.unmap_shared(first, pages);
  if (error != 0) return false;
  add_counted(from, -static_cast<std::int64_t>(pages));
  origin(index).store(ChunkOrigin::zeros, std::memory_order_relaxed);
  state_.note_departure(index, unused);
  return true;
}

}  // namespace vellum::region
