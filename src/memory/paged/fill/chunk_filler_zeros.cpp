// Pages that are zero.
//
// A read maps the zero page, over 2 MiB at once. A write gets private pages and maps nothing else:
// to replace a mapped page, the kernel interrupts every processor that runs the process, which
// takes longer than all the rest of the fault.
#include "memory/paged/fill/chunk_filler.hpp"

#include <algorithm>
#include <cassert>

#include "memory/paging/bits.hpp"

namespace vellum::region {

// Fills the claimed chunk and the missing ones that follow it, up to `pages` pages.
bool ChunkFiller::fill_zero(std::size_t index, std::size_t pages,
                            store::ReadFailure& failure) noexcept {
  const bool near_limit = state_.options.writable && state_.pager->lacking(kTablePages) != 0;
  std::size_t count = 1;
  while (!near_limit && count * state_.chunk_pages() < pages &&
         state_.chunks.claim(index + count, Chunk::kMissing)) {
    // A chunk that was present before may no longer be as in the source.
    if (state_.chunks[index + count].evicted_at.load() != 0) {
      state_.chunks.settle(index + count, 1, Chunk::kMissing);
      break;
    }
    ++count;
  }
  // Zeros take memory when they are written, which raises no event. They therefore count from now
  // on, until the pager counts the private pages.
  const auto taken = static_cast<std::int64_t>(count * state_.chunk_pages());
  const std::int64_t counted = state_.traits.zeros_take_memory ? 2 * taken : taken;
  const PagedState::AddedPrivate added(state_, state_.options.writable ? counted : 0);
  const int error = added.settle(engine_.map_zero(index * state_.chunk_pages(),
                                                  std::min(count * state_.chunk_pages(), pages)));
  for (std::size_t i = 0; i < count && error == 0; ++i) state_.note_arrival(index + i);
  state_.chunks.settle(index, count, error == 0 ? Chunk::kPresent : Chunk::kMissing);
  if (error == 0) return true;
  failure = {"cannot map memory", {}, index * state_.chunk_pages(), error};
  return false;
}

// Next to a chunk whose pages are all mapped, the whole chunk is filled: a program that writes in
// order faults once for each chunk. Otherwise only the page is filled, since scattered writes need
// no more; the next fault in the chunk fills the others.
bool ChunkFiller::fill_zero_for_writing(std::size_t index, PageNumber written, std::size_t pages,
                                        store::ReadFailure& failure) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  const bool only_page = pages > 1 && !has_mapped_neighbour(index);
  const PagedState::AddedPrivate added(state_, only_page ? 1 : static_cast<std::int64_t>(pages));
  const int error =
      added.settle(only_page ? engine_.place_zeros(written, 1) : engine_.place_zeros(first, pages));
  if (error == 0) {
    state_.note_arrival(index);
    if (only_page)
      state_.chunks[index].sole_mapped_page.store(static_cast<std::uint8_t>(written - first + 1));
  }
  state_.chunks.settle(index, 1, error == 0 ? Chunk::kPresent : Chunk::kMissing);
  if (error != 0) failure = {"no memory for the page", {}, written, error};
  return error == 0;
}

bool ChunkFiller::has_mapped_neighbour(std::size_t index) const noexcept {
  const auto is_mapped = [this](std::size_t chunk) {
    return state_.chunks.is_present(chunk) && state_.chunks[chunk].sole_mapped_page.load() == 0 &&
           state_.absent.of(chunk * state_.chunk_pages(), state_.chunk_pages()) == 0;
  };
  return (index != 0 && is_mapped(index - 1)) ||
         (index + 1 < state_.chunk_count() && is_mapped(index + 1));
}

int ChunkFiller::complete(std::size_t index, bool for_writing) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  const std::size_t pages = state_.pages_of(index);
  const unsigned sole = state_.chunks[index].sole_mapped_page.load();
  if (sole == 0) return 0;
  const std::uint64_t filled = 1ULL << (sole - 1) | state_.backing.base_copies_in(first, pages);
  const std::uint64_t holes = bits_below(pages) & ~filled;
  const PagedState::AddedPrivate added(state_, for_writing ? __builtin_popcountll(holes) : 0);
  const int error = added.settle(for_each_bit_range(holes, [&](std::size_t at, std::size_t n) {
    return for_writing ? engine_.place_zeros(first + at, n) : engine_.map_zero(first + at, n);
  }));
  // After an error, too: some pages may be filled, and a write to one raises no fault. A hole that
  // is left is filled by its own fault, and counts as written.
  state_.chunks[index].sole_mapped_page.store(0);
  return error;
}

}  // namespace vellum::region
