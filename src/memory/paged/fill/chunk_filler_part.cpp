// Partial fills: random single words load their pages, and not the pages around them.
//
// FillPolicy chooses a partial fill while memory is short. The chunk is then present, and its other
// pages are absent: an access to one faults again. The rest of the chunk is filled when a fault
// accesses the neighbour of a page in memory, or when a quarter of the chunk is in memory.
//
// Engine uffd only: engine sigsegv would need a mapping for each part.
#include "memory/paged/fill/chunk_filler.hpp"

#include <cassert>

#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kSharePresent = 4;  // with a quarter of a chunk, the rest is filled

// The neighbours of pages, one bit each.
std::uint64_t neighbours(std::uint64_t pages) noexcept { return pages << 1 | pages >> 1; }

}  // namespace

bool ChunkFiller::fill_part(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept {
  const std::size_t index = state_.chunk_of(page);
  if (const std::size_t lacking = state_.pager->lacking(2)) support_.make_room(lacking);
  const std::uint32_t was = state_.chunks.claim_settled(index);
  const PageNumber first = index * state_.chunk_pages();
  const std::size_t pages = state_.pages_of(index);
  const std::uint64_t bit = 1ULL << (page - first), all = bits_below(pages);
  std::uint64_t absent = was == Chunk::kPresent ? state_.absent.of(first, pages) : all;
  if ((absent & bit) == 0) {  // another thread has filled it meanwhile
    state_.chunks.settle(index, 1, was);
    return true;
  }
  const std::uint64_t spilled = state_.spilled_in(first, pages) & absent;
  if (was == Chunk::kMissing && spilled == 0 && state_.zeros_from(first, pages) == pages) {
    state_.chunks.settle(index, 1, was);
    return fill(index, failure, is_write ? std::optional(page) : std::nullopt);
  }
  std::uint64_t wanted = bit;
  const std::uint64_t filled = all & ~absent;
  const auto filled_count = static_cast<std::size_t>(__builtin_popcountll(filled));
  if ((neighbours(filled) & bit) != 0 || (filled_count + 1) * kSharePresent > pages)
    wanted = absent;
  if (was == Chunk::kMissing) {
    state_.chunks.touch(first, pages);
    state_.absent.set(first, all);
  }
  const bool ok = load(index, {wanted, spilled & wanted, is_write && wanted == bit}, failure);
  if (ok && was == Chunk::kMissing) state_.note_arrival(index);
  if (ok && wanted == absent) state_.partial_fills.note_completed();
  if (ok) {
    state_.absent.clear(first, wanted);
  } else if (was == Chunk::kMissing) {
    state_.absent.clear(first, all);
  }
  state_.chunks.settle(index, 1, ok ? Chunk::kPresent : was);
  return ok;
}

bool ChunkFiller::fill_rest(std::size_t index, store::ReadFailure& failure) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  if (state_.absent.of(first, state_.chunk_pages()) == 0) return true;
  const std::uint32_t was = state_.chunks.claim_settled(index);
  const std::uint64_t absent = state_.absent.of(first, state_.chunk_pages());
  bool ok = true;
  if (was == Chunk::kPresent && absent != 0) {
    const std::uint64_t spilled = state_.spilled_in(first, state_.pages_of(index)) & absent;
    ok = load(index, {absent, spilled, false}, failure);
    if (ok) state_.absent.clear(first, absent);
    if (ok) state_.partial_fills.note_completed();
  }
  state_.chunks.settle(index, 1, was);
  return ok;
}

}  // namespace vellum::region
