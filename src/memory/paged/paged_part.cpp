// A part of a chunk comes in: random single words bring in their pages, and not the pages around.
//
// While memory is short, a fault that follows no stream brings in its page alone. The chunk is then
// present, and its other pages are absent: an access to one faults again. The rest of the chunk
// comes in when a fault touches the neighbour of a page that is there, or when a quarter of the
// chunk is there. Whether parts pay is measured: when most chunks that began with a part have had
// to come in wholly, chunks come in wholly at once, but for a few, which go on measuring.
//
// An absent page has neither a base copy nor content of its own in memory; it may lie in the spill
// file. Engine uffd alone has parts: engine sigsegv would need a mapping for each.
#include <algorithm>

#include "memory/paged/paged_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kSharePresent = 4;  // of a chunk, with which the rest comes in
constexpr std::int64_t kShareFree = 4;    // of the limit: with so much, memory is not short

// The pages that share a border with those of `there`.
std::uint64_t beside(std::uint64_t there) noexcept { return there << 1 | there >> 1; }

}  // namespace

// Of a missing chunk that a fault has touched.
bool PagedMemory::wants_part(std::size_t index) noexcept {
  if (!traits_.writes_unmapped || options_.huge_pages || chunk_pages() == 1) return false;
  const Advice advice = chunks_[index].advice.load(std::memory_order_relaxed);
  if (advice == Advice::sequential || streams_.follows(index)) return false;
  const auto limit = static_cast<std::int64_t>(pager_->limit_bytes() / kPageBytes);
  if (pager_->used_pages() < limit - limit / kShareFree) return false;
  return parts_.next();
}

// In the fault handler: `page` is absent, or its chunk is missing.
bool PagedMemory::fill_part(PageNumber page, bool is_write, store::ReadFailure& failure) noexcept {
  const std::size_t index = chunk_of(page);
  if (const std::size_t lacking = pager_->lacking(2)) make_room(lacking);
  const std::uint32_t was = claim_settled(index);
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  const std::uint64_t bit = 1ULL << (page - first), all = bits_below(pages);
  std::uint64_t absent = was == Chunk::kPresent ? absent_.of(first, pages) : all;
  if ((absent & bit) == 0) {  // it has come in meanwhile
    chunks_.settle(index, 1, was);
    return true;
  }
  const std::uint64_t spilled = spill_ ? spill_->held_in(first, pages) & absent : 0;
  if (was == Chunk::kMissing && spilled == 0 && zeros_from(first, pages) == pages) {
    chunks_.settle(index, 1, was);
    return fill(index, failure, is_write ? std::optional(page) : std::nullopt);
  }
  std::uint64_t wanted = bit;
  const std::uint64_t there = all & ~absent;
  const auto count_there = static_cast<std::size_t>(__builtin_popcountll(there));
  if ((beside(there) & bit) != 0 || (count_there + 1) * kSharePresent > pages) wanted = absent;
  if (was == Chunk::kMissing) {
    chunks_.touch(first, pages);
    absent_.set(first, all);
  }
  const bool ok = bring(index, {wanted, spilled & wanted, is_write && wanted == bit}, failure);
  if (ok && was == Chunk::kMissing) note_arrival(index);
  if (ok && wanted == absent) parts_.note(true);
  if (ok) {
    absent_.clear(first, wanted);
  } else if (was == Chunk::kMissing) {
    absent_.clear(first, all);
  }
  chunks_.settle(index, 1, ok ? Chunk::kPresent : was);
  return ok;
}

// Brings in what is absent of a chunk that is present. True if it is missing.
bool PagedMemory::fill_rest(std::size_t index, store::ReadFailure& failure) noexcept {
  const PageNumber first = index * chunk_pages();
  if (absent_.of(first, chunk_pages()) == 0) return true;
  const std::uint32_t was = claim_settled(index);
  const std::uint64_t absent = absent_.of(first, chunk_pages());
  bool ok = true;
  if (was == Chunk::kPresent && absent != 0) {
    const std::uint64_t spilled = spill_ ? spill_->held_in(first, pages_of(index)) & absent : 0;
    ok = bring(index, {absent, spilled, false}, failure);
    if (ok) absent_.clear(first, absent);
    if (ok) parts_.note(true);
  }
  chunks_.settle(index, 1, was);
  return ok;
}

// Claims a chunk as soon as nobody else has it; returns the state that it was in.
std::uint32_t PagedMemory::claim_settled(std::size_t index) noexcept {
  for (;;) {
    if (chunks_.claim(index, Chunk::kMissing)) return Chunk::kMissing;
    if (chunks_.claim(index, Chunk::kPresent)) return Chunk::kPresent;
    chunks_.wait_while_claimed(index);
  }
}

}  // namespace vellum::region
