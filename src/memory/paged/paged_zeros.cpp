// Pages that are zero: which of them never come in, and what comes in for a read or a write.
//
// A read maps the zero page, over 2 MiB at once. A write gets private pages and maps nothing else:
// to replace a page that is mapped, the kernel interrupts every processor that runs the process,
// which takes longer than all the rest of the fault.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

// How many pages from `first` on, at most `pages`, the source has as zeros.
std::size_t PagedMemory::zeros_from(PageNumber first, std::size_t pages) const noexcept {
  const LiveSource::Use source(source_);
  return source.get() != nullptr ? source->zeros_from(first, pages) : pages;
}

bool PagedMemory::holds_nothing(PageNumber page) const noexcept {
  const std::size_t index = chunk_of(page);
  if (!chunks_.is_missing(index)) return false;
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  if (spill_ && spill_->held_in(first, pages) != 0) return false;
  return zeros_from(first, pages) == pages;
}

std::size_t PagedMemory::untouched_zeros(PageNumber first, std::size_t limit) const noexcept {
  if (limit == 0) return 0;
  const std::size_t end = (first + limit - 1) / kTablePages + 1;
  const std::size_t table = chunks_.next_touched(first / kTablePages, end);
  const PageNumber touched = std::min<PageNumber>(table * kTablePages, first + limit);
  return touched > first ? zeros_from(first, static_cast<std::size_t>(touched - first)) : 0;
}

// Fills the chunk and the missing ones that follow it.
bool PagedMemory::fill_zero(std::size_t index, std::size_t pages,
                            store::ReadFailure& failure) noexcept {
  const bool near_limit = options_.writable && pager_->lacking(kTablePages) != 0;
  std::size_t count = 1;
  while (!near_limit && count * chunk_pages() < pages &&
         chunks_.claim(index + count, Chunk::kMissing)) {
    // A chunk that was here before may no longer be what the source said above.
    if (chunks_[index + count].evicted_at.load() != 0) {
      chunks_.settle(index + count, 1, Chunk::kMissing);
      break;
    }
    ++count;
  }
  const int error = map_zero(index * chunk_pages(), std::min(count * chunk_pages(), pages));
  for (std::size_t i = 0; i < count && error == 0; ++i) note_arrival(index + i);
  // Zeros take memory when they are written, which raises no event. So they count from now on,
  // until the pager counts what is there.
  const auto taken = static_cast<std::int64_t>(count * chunk_pages());
  if (error == 0 && options_.writable) add_private(traits_.zeros_take_memory ? 2 * taken : taken);
  chunks_.settle(index, count, error == 0 ? Chunk::kPresent : Chunk::kMissing);
  if (error == 0) return true;
  failure = {"cannot map memory", {}, index * chunk_pages(), error};
  return false;
}

// Beside a chunk of which all is mapped, the whole chunk comes in: a program that writes in order
// faults once for each chunk. Elsewhere the page comes in alone, since scattered writes need no
// more; the next fault in the chunk brings in the others.
bool PagedMemory::fill_zero_for_writing(std::size_t index, PageNumber written, std::size_t pages,
                                        store::ReadFailure& failure) noexcept {
  const PageNumber first = index * chunk_pages();
  const bool alone = pages > 1 && !has_mapped_neighbour(index);
  const int error = alone ? place_zeros(written, 1) : place_zeros(first, pages);
  if (error == 0) {
    note_arrival(index);
    if (alone) chunks_[index].only.store(static_cast<std::uint8_t>(written - first + 1));
    add_private(alone ? 1 : static_cast<std::int64_t>(pages));
  }
  chunks_.settle(index, 1, error == 0 ? Chunk::kPresent : Chunk::kMissing);
  if (error != 0) failure = {"no memory for the page", {}, written, error};
  return error == 0;
}

bool PagedMemory::has_mapped_neighbour(std::size_t index) const noexcept {
  const auto is_mapped = [this](std::size_t chunk) {
    return chunks_.is_present(chunk) && chunks_[chunk].only.load() == 0 &&
           absent_.of(chunk * chunk_pages(), chunk_pages()) == 0;
  };
  return (index != 0 && is_mapped(index - 1)) ||
         (index + 1 < chunks_of(size_bytes()) && is_mapped(index + 1));
}

bool PagedMemory::is_untouched(PageNumber page) const noexcept {
  const unsigned only = chunks_[chunk_of(page)].only.load();
  return only != 0 && page % chunk_pages() != only - 1 && !backing_.has_base_copy(page);
}

int PagedMemory::complete(std::size_t index, bool for_writing) noexcept {
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  const unsigned only = chunks_[index].only.load();
  if (only == 0) return 0;
  const std::uint64_t there = 1ULL << (only - 1) | backing_.base_copies_in(first, pages);
  const std::uint64_t holes = bits_below(pages) & ~there;
  const int error = for_each_bit_range(holes, [&](std::size_t at, std::size_t n) {
    return for_writing ? place_zeros(first + at, n) : map_zero(first + at, n);
  });
  // After an error, too: some pages may have come in, and a write to one raises no fault. A hole that
  // is left comes in alone, and counts as written.
  chunks_[index].only.store(0);
  if (error == 0 && for_writing) add_private(__builtin_popcountll(holes));
  return error;
}

}  // namespace vellum::region
