// The working set: a region opens with the pages that its last use touched, and remembers which
// pages this use touches.
//
// A prefetched chunk is in the memfd, and nothing maps it; it is as present as any other. A touch
// maps it: under engine uffd through the kernel, which shows only in its page tables; under engine
// sigsegv through a fault. So a prefetched chunk without a mapped page is unused and leaves the
// set. A chunk that comes in by a fault or by an advice counts as used. So do its neighbours where
// the kernel maps more around a fault (64 KiB) than a chunk has: versions with smaller chunks,
// engine uffd.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"
#include "memory/paged/paged_memory_no_read_ahead.hpp"

namespace vellum::region {
namespace {

using NumberedChunk = std::pair<std::uint32_t, std::size_t>;

// The chunks by their numbers; neighbours that follow one another are joined. The region's end may
// cut the last chunk.
std::vector<format::PageRange> ranges_of(std::vector<NumberedChunk>& chunks,
                                         std::size_t chunk_pages, std::uint64_t pages) {
  std::sort(chunks.begin(), chunks.end());
  std::vector<format::PageRange> out;
  for (const auto& [number, index] : chunks) {
    const PageNumber first = index * chunk_pages;
    const std::uint64_t count = std::min<std::uint64_t>(chunk_pages, pages - first);
    if (!out.empty() && out.back().first + out.back().count == first) {
      out.back().count += count;
    } else {
      out.push_back({first, count});
    }
  }
  return out;
}

}  // namespace

// REQUIRES: nothing has come in yet.
void PagedMemory::make_working_set() {
  const std::size_t half = pager_->limit_bytes() / 2 / chunk_bytes();
  working_set_ = std::make_unique<WorkingSet>(options_.capacity_bytes / chunk_bytes() + 1,
                                              options_.last_working_set, chunk_pages(), half);
}

bool PagedMemory::is_unused(std::size_t index) noexcept {
  return chunks_[index].prefetched.load(std::memory_order_relaxed) != 0 &&
         !kernel_has_mapped(index * chunk_pages(), chunk_pages());
}

// For a caller that needs a chunk mapped, not only present. Counts as a use of the chunk.
bool PagedMemory::map_all(std::size_t index, store::ReadFailure& failure) noexcept {
  Chunk& chunk = chunks_[index];
  if (chunk.prefetched.load() == 0 && chunk.only.load() == 0) return true;
  while (!chunks_.claim(index, Chunk::kPresent)) {
    if (chunks_.is_missing(index)) return fill(index, failure);  // it has left meanwhile
    chunks_.wait_while_claimed(index);
  }
  const PageNumber first = index * chunk_pages();
  int error = complete(index, false);
  if (chunk.prefetched.exchange(0) != 0) error = map_present(first, chunk_pages());
  chunks_.settle(index, 1, Chunk::kPresent);
  if (error != 0) failure = {"cannot map memory", {}, first, error};
  return error == 0;
}

// Prefetches one chunk, or passes over a stretch that needs none. A chunk that cannot be read is
// left for the fault that needs it. Nothing leaves memory for it, of this region or another.
bool PagedMemory::prefetch_step() noexcept {
  if (working_set_ == nullptr) return false;
  // Only chunks that were whole at the opening: grow() refills a chunk that the end cuts.
  const std::size_t chunks = std::min(size_bytes(), options_.size_bytes) / chunk_bytes();
  WorkingSet::Wanted next;
  if (!working_set_->next(chunks, next)) return false;
  if (pager_->is_doubtful() || pager_->lacking(chunk_pages()) != 0) {
    working_set_->end();
    return false;
  }
  const std::size_t zero_pages =
      zeros_from(next.index * chunk_pages(), (chunks - next.index) * chunk_pages());
  // Zeros come in by 2 MiB anyway, and count as memory.
  if (zero_pages >= chunk_pages()) {
    working_set_->leave_out(next, next.index + zero_pages / chunk_pages());
  } else if (!chunks_.claim(next.index, Chunk::kMissing) || !prefetch_chunk(next.index)) {
    working_set_->leave_out(next);
  }
  return true;
}

// In the fault handler: a thread that meets a chunk that is being brought in takes the next ones
// meanwhile. Otherwise a program that repeats its last run would wait for each.
void PagedMemory::prefetch_beside(std::size_t index) noexcept {
  while (chunks_[index].state.load() == Chunk::kClaimed && prefetch_step()) {
  }
}

// REQUIRES: claimed.
bool PagedMemory::prefetch_chunk(std::size_t index) noexcept {
  const PageNumber first = index * chunk_pages();
  // The chunk has been here meanwhile and was written.
  if (spill_ && spill_->held_in(first, chunk_pages()) != 0) {
    chunks_.settle(index, 1, Chunk::kMissing);
    return false;
  }
  // Touched before a page is mapped, so that no write to it can be overlooked.
  chunks_.touch(first, chunk_pages());
  store::ReadFailure ignored;
  return fill_from_source(index, chunk_pages(), ignored, Mapping::by_touch);
}

std::vector<format::PageRange> PagedMemory::working_set() {
  if (working_set_ == nullptr) return {};
  const NoReadAhead still(*this);
  std::vector<NumberedChunk> chunks;
  const std::size_t table_chunks = kTablePages / chunk_pages();
  const std::size_t end = chunks_of(size_bytes());
  const std::size_t tables = (end + table_chunks - 1) / table_chunks;
  for (std::size_t table = chunks_.next_touched(0, tables); table < tables;
       table = chunks_.next_touched(table + 1, tables)) {
    const std::size_t table_end = std::min((table + 1) * table_chunks, end);
    for (std::size_t index = table * table_chunks; index < table_end; ++index) {
      const std::uint32_t number = working_set_->number_of(index);
      if (number != 0 && !is_unused(index)) chunks.emplace_back(number, index);
    }
  }
  return ranges_of(chunks, chunk_pages(), size_bytes() / kPageBytes);
}

}  // namespace vellum::region
