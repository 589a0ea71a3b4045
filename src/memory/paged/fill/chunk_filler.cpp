#include "memory/paged/fill/chunk_filler.hpp"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "base/memory/zeros.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {
namespace {

// At most this much room is made by one fault, so that a thread that waits for memory gets it soon.
constexpr std::size_t kRoomChunks = 4;

// Which of the pages are not all zero: one bit per page.
std::uint64_t filled_pages(const std::byte* content, std::size_t pages) noexcept {
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < pages; ++i) {
    if (!base::is_zero({content + i * kPageBytes, kPageBytes})) filled |= 1ULL << i;
  }
  return filled;
}

// Zero pages are filled with the others where a chunk then takes at most four times the memory of
// its other pages.
constexpr std::size_t kMaxTimesFilled = 4;

}  // namespace

void ChunkFiller::make_room_for(std::size_t index) noexcept {
  // Differences in the spill file are held twice: as written, and as committed.
  const PageNumber page = index * state_.chunk_pages();
  const bool twice =
      state_.has_spilled() && state_.spill->holds(page) && state_.spill->whole_in(page, 1) == 0;
  const std::size_t pages = twice ? 2 * state_.chunk_pages() : state_.chunk_pages();
  const std::size_t lacking = state_.pager->lacking(pages);
  if (lacking != 0) support_.make_room(std::min(lacking, kRoomChunks * state_.chunk_pages()));
}

bool ChunkFiller::fill(std::size_t index, store::ReadFailure& failure,
                       std::optional<PageNumber> written) noexcept {
  assert(!written || state_.chunk_of(*written) == index);
  if (state_.chunks.is_missing(index)) make_room_for(index);
  while (!state_.chunks.claim(index, Chunk::kMissing)) {
    if (state_.chunks[index].state.load() == Chunk::kPresent) return true;
    state_.chunks.wait_while_claimed(index);
  }
  // Within the size: the mapping beyond is another one and belongs to PagedMemory::grow().
  const PageNumber first = index * state_.chunk_pages();
  const auto room =
      std::min<std::size_t>(state_.size_pages() - first, kTablePages - first % kTablePages);
  const std::size_t pages = std::min(state_.chunk_pages(), room);
  // Before a page is mapped, so that no scan misses a write to it.
  state_.chunks.touch(first, room);
  const std::uint64_t spilled = state_.spilled_in(first, pages);
  if (spilled != 0) return fill_with_spill(index, pages, spilled, failure);
  if (!state_.traits.writes_unmapped) written.reset();
  const std::size_t zero_pages = state_.zeros_from(first, room);
  if (written && zero_pages >= pages) {
    return fill_zero_for_writing(index, *written, pages, failure);
  }
  if (zero_pages == room) return fill_zero(index, room, failure);
  if (zero_pages >= state_.chunk_pages()) {
    return fill_zero(index, zero_pages / state_.chunk_pages() * state_.chunk_pages(), failure);
  }
  return fill_from_source(index, pages, failure,
                          written ? ChunkMapping::by_write : ChunkMapping::now);
}

bool ChunkFiller::fill_from_source(std::size_t index, std::size_t pages,
                                   store::ReadFailure& failure, ChunkMapping mapping) noexcept {
  if (state_.options.shared) return support_.fill_shared(index, pages, failure, mapping);
  const PageNumber first = index * state_.chunk_pages();
  Scratch& scratch = state_.scratches.lock();
  bool ok = false;
  {
    const LiveSourceReader source(state_.source);
    ok = source->try_read(first, pages, scratch.old, failure);
  }
  if (ok) {
    const int error = show_committed(first, pages, scratch.old, mapping);
    if (error != 0) failure = {"no memory for the page", {}, first, error};
    ok = error == 0;
  }
  if (ok) state_.note_arrival(index, mapping);
  scratch.lock.unlock();
  state_.chunks.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Pages of zeros take no memory before they are accessed, but each range of other pages costs its
// own system calls.
int ChunkFiller::show_committed(PageNumber first, std::size_t pages, const std::byte* content,
                                ChunkMapping mapping) noexcept {
  const bool may_skip_zeros = mapping != ChunkMapping::by_touch && !state_.options.huge_pages;
  const std::uint64_t filled = may_skip_zeros ? filled_pages(content, pages) : bits_below(pages);
  const auto count = static_cast<std::size_t>(__builtin_popcountll(filled));
  if (count * kMaxTimesFilled <= pages) {
    const auto zeros = static_cast<std::int64_t>(pages - count);
    const PagedState::AddedPrivate added(state_, state_.options.writable ? zeros : 0);
    return added.settle(show(first, bits_below(pages), content, filled, nullptr, 0));
  }
  // Next to a mapped chunk, most pages of this one are likely to be written, too: arming would cost
  // each of them another fault. A page that is not written after all is compared once.
  const bool likely_written =
      mapping == ChunkMapping::by_write && has_mapped_neighbour(state_.chunk_of(first));
  int error = 0;
  if (likely_written) {
    engine_.note_unarmed(first, pages);
  } else if (mapping != ChunkMapping::now || state_.traits.arms_holes) {
    error = engine_.prepare_unmapped(first, pages);
  }
  if (error == 0) error = state_.backing.write(first, {content, pages * kPageBytes});
  if (error != 0) return error;
  state_.backing.note_base_copies(first, pages);
  if (state_.options.writable) state_.backing.map_around(first, pages);
  return mapping == ChunkMapping::now ? engine_.map_present(first, pages) : 0;
}

bool ChunkFiller::read_source(PageNumber first, std::size_t pages, std::byte* out, bool& zero,
                              store::ReadFailure& failure) noexcept {
  const LiveSourceReader source(state_.source);
  zero = source.get() == nullptr || source->zeros_from(first, pages) == pages;
  const bool alone = pages * kMaxTimesFilled <= state_.chunk_pages();
  if (!zero) return source->try_read(first, pages, out, failure, alone);
  std::memset(out, 0, pages * kPageBytes);
  return true;
}

bool ChunkFiller::fill_with_spill(std::size_t index, std::size_t pages, std::uint64_t spilled,
                                  store::ReadFailure& failure) noexcept {
  const bool ok = load(index, {bits_below(pages), spilled, false}, failure);
  if (ok) state_.note_arrival(index);
  state_.chunks.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Everything is read and checked before a page is mapped: after that only memory can run out.
bool ChunkFiller::load(std::size_t index, const PartialFill& part,
                       store::ReadFailure& failure) noexcept {
  assert(part.wanted != 0 && (part.spilled & ~part.wanted) == 0);
  assert(!part.for_writing || std::has_single_bit(part.wanted));
  const PageNumber first = index * state_.chunk_pages();
  Scratch& scratch = state_.scratches.lock();
  Unspilled found;
  const std::uint64_t whole =
      part.spilled != 0 ? state_.spill->whole_in(first, state_.chunk_pages()) & part.spilled : 0;
  bool ok =
      read_committed_part(first, part.wanted & ~whole, scratch, found, failure) &&
      (part.spilled == 0 || read_spilled(first, part.spilled, whole, scratch, found, failure));
  if (ok) {
    const auto at = static_cast<std::size_t>(__builtin_ctzll(part.wanted));
    const int error =
        part.for_writing && found.own == 0
            ? show_for_writing(first + at,
                               found.base_copies != 0 ? scratch.old + at * kPageBytes : nullptr)
            : show_found(first, part.wanted, scratch, found);
    if (error != 0) {
      if (part.spilled != 0) state_.lose("no memory to load pages from the spill file");
      failure = {"no memory for the page", {}, first, error};
      ok = false;
    }
  }
  scratch.lock.unlock();
  if (ok) note_unspilled(index, found);
  return ok;
}

int ChunkFiller::show_found(PageNumber first, std::uint64_t wanted, const Scratch& scratch,
                            const Unspilled& found) noexcept {
  // Where zeros take memory, a private page without a base copy has one of zeros below it.
  const std::uint64_t zeros = state_.traits.zeros_take_memory ? found.own & ~found.base_copies : 0;
  const PagedState::AddedPrivate added(
      state_, __builtin_popcountll(found.own) + __builtin_popcountll(zeros));
  return added.settle(show(first, wanted, scratch.old, found.base_copies, scratch.own, found.own));
}

// A page with its committed content; null: zeros. The write follows, and the kernel copies the base
// copy for it.
int ChunkFiller::show_for_writing(PageNumber page, const std::byte* base_copy_content) noexcept {
  const PagedState::AddedPrivate added(state_, 1);
  if (base_copy_content == nullptr) return added.settle(engine_.place_zeros(page, 1));
  engine_.note_unarmed(page, 1);
  const int error = state_.backing.write(page, {base_copy_content, kPageBytes});
  if (error == 0) state_.backing.note_base_copies(page, 1);
  return added.settle(error);
}

// Reads the needed pages, and those between them, into scratch.old.
bool ChunkFiller::read_committed_part(PageNumber first, std::uint64_t needed, Scratch& scratch,
                                      Unspilled& found, store::ReadFailure& failure) noexcept {
  if (needed == 0) return true;
  const auto begin = static_cast<std::size_t>(__builtin_ctzll(needed));
  const auto end = static_cast<std::size_t>(64 - __builtin_clzll(needed));
  bool zero = false;
  if (!read_source(first + begin, end - begin, scratch.old + begin * kPageBytes, zero, failure))
    return false;
  if (!zero) found.base_copies = needed;
  return true;
}

// REQUIRES: scratch.old has the committed content of all spilled pages that are not whole in the
// spill file.
bool ChunkFiller::read_spilled(PageNumber first, std::uint64_t spilled, std::uint64_t whole,
                               Scratch& scratch, Unspilled& found,
                               store::ReadFailure& failure) noexcept {
  const SpillFile::LoadedRecords loaded = state_.spill->load(first, spilled, scratch.batch);
  for (std::uint64_t rest = spilled; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(rest));
    SpillFile::Entry entry;
    const int error = state_.spill->read(loaded, first + i, scratch.record, entry);
    if (error != 0) {
      failure = {"cannot be read back from the spill file", {}, first + i, error};
      return false;
    }
    std::byte* const old = scratch.old + i * kPageBytes;
    std::byte* const own = scratch.own + i * kPageBytes;
    if (state_.spill->is_taken(first + i)) {
      // The current commit has taken it: the base copy is the recorded content, as for all pages.
      entry.apply_to(old);
      found.base_copies |= 1ULL << i;
      state_.note_newer(first + i);
    } else {
      if ((whole >> i & 1) == 0) std::memcpy(own, old, kPageBytes);
      entry.apply_to(own);
      found.own |= 1ULL << i;
      found.bare |= whole & 1ULL << i;
    }
  }
  return true;
}

void ChunkFiller::note_unspilled(std::size_t index, const Unspilled& found) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  for (std::uint64_t rest = found.own; rest != 0; rest &= rest - 1) {
    state_.spill->drop(first + static_cast<std::size_t>(__builtin_ctzll(rest)));
  }
  state_.bare.set(first, found.bare);
}

int ChunkFiller::place_own(PageNumber first, const std::byte* content, std::uint64_t own) noexcept {
  constexpr int kMaxTries = 1000;
  return for_each_bit_range(own, [&](std::size_t at, std::size_t n) {
    int error = engine_.place_private(first + at, n, content + at * kPageBytes);
    for (int tries = 0; error != 0 && tries < kMaxTries; ++tries) {
      sched_yield();
      error = engine_.place_private(first + at, n, content + at * kPageBytes);
    }
    return error;
  });
}

// Private pages are placed first: once a page's base copy is in the memfd, another thread may map
// the base copy.
int ChunkFiller::show(PageNumber first, std::uint64_t pages, const std::byte* base_copy_content,
                      std::uint64_t base_copies, const std::byte* own_content,
                      std::uint64_t own) noexcept {
  assert((own & ~pages) == 0);
  if (const int error = place_own(first, own_content, own); error != 0) return error;
  const std::uint64_t unarmed = state_.traits.arms_holes ? base_copies & ~own : 0;
  int error = for_each_bit_range(unarmed, [&](std::size_t at, std::size_t n) {
    return engine_.prepare_unmapped(first + at, n);
  });
  if (error != 0) return error;
  error = for_each_bit_range(base_copies, [&](std::size_t at, std::size_t n) {
    const int e =
        state_.backing.write(first + at, {base_copy_content + at * kPageBytes, n * kPageBytes});
    if (e == 0) state_.backing.note_base_copies(first + at, n);
    return e;
  });
  if (error != 0) return error;
  // Where zeros are mapped like base copies, one call maps both: each call splits a mapping.
  const std::uint64_t present = state_.traits.zeros_take_memory ? pages : base_copies;
  const int mapped = for_each_bit_range(present & ~own & pages, [&](std::size_t at, std::size_t n) {
    return engine_.map_present(first + at, n);
  });
  if (mapped != 0) return mapped;
  const int zeroed = for_each_bit_range(
      ~present & ~own & pages,
      [&](std::size_t at, std::size_t n) { return engine_.map_zero(first + at, n); });
  if (zeroed == 0) engine_.note_placed(first, own);
  state_.chunks[state_.chunk_of(first)].sole_mapped_page.store(0);
  return zeroed;
}

bool ChunkFiller::map_all(std::size_t index, store::ReadFailure& failure) noexcept {
  Chunk& chunk = state_.chunks[index];
  if (chunk.prefetched.load() == 0 && chunk.sole_mapped_page.load() == 0) return true;
  while (!state_.chunks.claim(index, Chunk::kPresent)) {
    if (state_.chunks.is_missing(index)) return fill(index, failure);  // evicted meanwhile
    state_.chunks.wait_while_claimed(index);
  }
  const PageNumber first = index * state_.chunk_pages();
  int error = complete(index, false);
  if (chunk.prefetched.exchange(0) != 0) error = engine_.map_present(first, state_.chunk_pages());
  state_.chunks.settle(index, 1, Chunk::kPresent);
  if (error != 0) failure = {"cannot map memory", {}, first, error};
  return error == 0;
}

bool ChunkFiller::prefetch(std::size_t index) noexcept {
  const PageNumber first = index * state_.chunk_pages();
  // The chunk was present meanwhile and was written.
  if (state_.spilled_in(first, state_.chunk_pages()) != 0) {
    state_.chunks.settle(index, 1, Chunk::kMissing);
    return false;
  }
  // Before a page is mapped, so that no scan misses a write to it.
  state_.chunks.touch(first, state_.chunk_pages());
  store::ReadFailure ignored;
  return fill_from_source(index, state_.chunk_pages(), ignored, ChunkMapping::by_touch);
}

}  // namespace vellum::region
