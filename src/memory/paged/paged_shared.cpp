// Pages of a version that its readers share (MemoryOptions::shared).
//
// The range maps the shared file, but shows nothing of it before this region knows that it is right:
// engine uffd is asked about every page that is not mapped, and engine sigsegv keeps it closed.
// Whichever reader touches a chunk first fills it for all. A chunk that cannot be shared comes in as
// pages of this process alone.
//
// The count of pages is honest: who fills a chunk pays for it until the region closes, since
// nothing that this region does would free it. So filling stops at half of the memory limit, and the
// rest of the version is not shared. Chunks that others have filled count while they are mapped, and
// leave by being unmapped.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"

namespace vellum::region {
namespace {

using std::chrono::milliseconds;

// A reader that fills a chunk and dies wakes nobody: those who wait look as often as this,
constexpr milliseconds kLookAgain{10};
// and do without the chunk after this time: the reader may have been stopped. It may hold many, so
// from then on they wait only once, until one of the waits is worth it.
constexpr milliseconds kPatience{2000};

}  // namespace

// REQUIRES: claimed.
bool PagedMemory::fill_shared(std::size_t index, std::size_t pages, store::ReadFailure& failure,
                              Mapping mapping) noexcept {
  SharedChunks& shared = *options_.shared;
  const PageNumber first = index * chunk_pages();
  const Shared state = await_shared(index);
  Origin from = Origin::found;
  bool ok = true;
  int error = 0;
  if (state != Shared::full) {
    Scratch& scratch = scratches_.lock();
    {
      const LiveSource::Use source(source_);
      ok = source->try_read(first, chunk_pages(), scratch.old, failure);
    }
    const bool put = ok && state == Shared::to_fill && may_fill_shared() &&
                     shared.put(index, {scratch.old, chunk_bytes()}) == 0;
    if (state == Shared::to_fill) shared.unlock(index);
    from = put ? Origin::filled_here : Origin::unshared;
    origin(index).store(from, std::memory_order_relaxed);
    if (ok && !put) error = place_unshared(first, pages, scratch.old);
    scratch.lock.unlock();
  }
  if (ok && from != Origin::unshared) error = show_shared(index, 1, from, mapping);
  if (error != 0) failure = {"no memory for the page", {}, first, error};
  ok = ok && error == 0;
  if (ok && from == Origin::unshared) count_shared(index, from, static_cast<std::int64_t>(pages));
  if (ok) note_arrival(index, from == Origin::unshared ? Mapping::now : mapping);
  chunks_.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Chunks count before they are mapped, since whoever touches them goes on at once. 0 or errno.
int PagedMemory::show_shared(std::size_t index, std::size_t count, Origin from,
                             Mapping mapping) noexcept {
  const PageNumber first = index * chunk_pages();
  const PageNumber end =
      std::min<PageNumber>((index + count) * chunk_pages(), size_bytes() / kPageBytes);
  const auto pages = static_cast<std::int64_t>(end - first);
  for (std::size_t i = index; i < index + count; ++i)
    origin(i).store(from, std::memory_order_relaxed);
  count_shared(index, from, pages);
  const int error = mapping == Mapping::by_touch ? 0 : map_present(first, end - first);
  if (error != 0) count_shared(index, from, -pages);
  return error;
}

// Waits until the chunk is full, or this region may fill it (and has locked it), or for too long.
PagedMemory::Shared PagedMemory::await_shared(std::size_t index) noexcept {
  SharedChunks& shared = *options_.shared;
  for (milliseconds waited{0};; waited += kLookAgain) {
    const bool locked = !shared.is_full(index) && shared.try_lock(index);
    if (shared.is_full(index)) {
      if (locked) shared.unlock(index);
      if (waited.count() != 0) impatient_.store(false, std::memory_order_relaxed);
      return shared.check(index) ? Shared::full : Shared::wrong;
    }
    if (locked) return Shared::to_fill;
    if (waited >= (impatient_.load(std::memory_order_relaxed) ? kLookAgain : kPatience)) break;
    shared.wait(index, kLookAgain);
  }
  impatient_.store(true, std::memory_order_relaxed);
  return Shared::late;
}

bool PagedMemory::may_fill_shared() const noexcept {
  const auto half = static_cast<std::int64_t>(pager_->limit_bytes() / kPageBytes / 2);
  return pager_->used_pages() + static_cast<std::int64_t>(chunk_pages()) <= half;
}

// Base copies count by themselves.
void PagedMemory::count_shared(std::size_t index, Origin from, std::int64_t pages) noexcept {
  if (from == Origin::unshared && backing_.has_base_copy(index * chunk_pages())) return;
  auto& count = from == Origin::unshared ? unshared_pages_ : shared_pages_;
  count.fetch_add(pages, std::memory_order_relaxed);
  pager_->add_pages(pages);
}

// Maps those of the missing chunks that are full, in as few calls as possible: a fault for each
// would take longer than the mapping.
void PagedMemory::map_full(std::size_t index, std::size_t count) noexcept {
  const std::size_t end = std::min(index + count, chunks_of(size_bytes()));
  if (pager_->is_doubtful() || pager_->lacking(count * chunk_pages()) != 0) return;
  while (index < end) {
    std::size_t run = 0;
    while (index + run < end && options_.shared->is_full(index + run) &&
           chunks_.claim(index + run, Chunk::kMissing)) {
      ++run;
    }
    if (run != 0) map_run(index, run);
    index += run + 1;
  }
}

// REQUIRES: claimed and full. A chunk that is not right is left for the fault that needs it.
void PagedMemory::map_run(std::size_t index, std::size_t count) noexcept {
  const std::size_t right = options_.shared->check(index, count);
  if (right != 0) chunks_.touch(index * chunk_pages(), right * chunk_pages());
  const bool shown = right != 0 && show_shared(index, right, Origin::found, Mapping::now) == 0;
  for (std::size_t i = index; shown && i < index + right; ++i) note_arrival(i);
  chunks_.settle(index, right, shown ? Chunk::kPresent : Chunk::kMissing);
  chunks_.settle(index + right, count - right, Chunk::kMissing);
}

// Brings chunks in that lie together: what is full at once, and the rest unless another reader is
// filling some of it, who goes on to fill all. Records that several of them need are so decoded by
// one reader.
void PagedMemory::load_shared(std::size_t index, std::size_t count) noexcept {
  count = std::min(count, chunks_of(size_bytes()) - index);
  map_full(index, count);
  SharedChunks& shared = *options_.shared;
  if (!shared.try_lock(index, count)) return;
  for (std::size_t i = index; i < index + count; ++i) {
    store::ReadFailure ignored;
    if (worth_reading_ahead(i)) fill(i, ignored);
  }
  shared.unlock(index, count);
}

// Those 2 MiB that lie wholly in the range.
void PagedMemory::load_shared_range(PageNumber first, std::size_t count) noexcept {
  const std::size_t unit_chunks = kTablePages / chunk_pages();
  const PageNumber end = first + count;
  for (PageNumber at = (first + kTablePages - 1) / kTablePages * kTablePages;
       at + kTablePages <= end; at += kTablePages) {
    load_shared(at / chunk_pages(), unit_chunks);
  }
}

// A page is touched whose chunk is present: it came in a moment ago, or early and unmapped, or the
// kernel or the program has taken it out of the page table.
int PagedMemory::show_shared_again(std::size_t index) noexcept {
  if (!chunks_.claim(index, Chunk::kPresent)) return 0;
  int error = 0;
  bool gone = false;
  if (origin(index).load(std::memory_order_relaxed) == Origin::unshared) {
    gone = take_out_shared(index);  // and comes in anew
  } else {
    error = map_present(index * chunk_pages(), pages_of(index));
  }
  chunks_.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return error;
}

// REQUIRES: claimed. Returns how many pages no longer count.
std::size_t PagedMemory::evict_shared(std::size_t index) noexcept {
  const Origin from = origin(index).load(std::memory_order_relaxed);
  const std::size_t pages = pages_of(index);
  const bool stays = from == Origin::zeros || from == Origin::filled_here || pages == 0;
  const bool gone = !stays && take_out_shared(index);
  chunks_.settle(index, 1, gone ? Chunk::kMissing : Chunk::kPresent);
  return gone ? pages : 0;
}

bool PagedMemory::take_out_shared(std::size_t index) noexcept {
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  const bool unused = working_set_ && is_unused(index);
  const Origin from = origin(index).load(std::memory_order_relaxed);
  const bool base_copies = backing_.has_base_copy(first);
  const int error =
      from == Origin::unshared ? remove_unshared(first, pages) : unmap_shared(first, pages);
  if (error != 0) return false;
  if (!base_copies) count_shared(index, from, -static_cast<std::int64_t>(pages));
  origin(index).store(Origin::zeros, std::memory_order_relaxed);
  note_departure(index, unused);
  return true;
}

}  // namespace vellum::region
