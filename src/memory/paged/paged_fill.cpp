// Page-in of a chunk: from the version's source, from the spill file, or as zeros. Runs in the
// fault handler.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "base/memory/zeros.hpp"
#include "memory/paged/paged_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

namespace {

// The most that one fault makes room for, so that a thread that waits for memory gets it soon.
constexpr std::size_t kRoomChunks = 4;

// Which of the pages are not all zero: one bit per page.
std::uint64_t filled_pages(const std::byte* content, std::size_t pages) noexcept {
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < pages; ++i) {
    if (!base::is_zero({content + i * kPageBytes, kPageBytes})) filled |= 1ULL << i;
  }
  return filled;
}

// A chunk takes at most four times the memory of its filled pages.
constexpr std::size_t kMaxTimesFilled = 4;

}  // namespace

bool PagedMemory::fill(std::size_t index, store::ReadFailure& failure,
                       std::optional<PageNumber> written) noexcept {
  if (chunks_.is_missing(index)) {
    // Differences in the spill file are held twice: as written, and as committed.
    const PageNumber page = index * chunk_pages();
    const bool twice =
        spill_ && spill_->pages() != 0 && spill_->holds(page) && spill_->whole_in(page, 1) == 0;
    const std::size_t lacking = pager_->lacking(twice ? 2 * chunk_pages() : chunk_pages());
    if (lacking != 0) make_room(std::min(lacking, kRoomChunks * chunk_pages()));
  }
  while (!chunks_.claim(index, Chunk::kMissing)) {
    if (chunks_[index].state.load() == Chunk::kPresent) return true;
    chunks_.wait_while_claimed(index);
  }
  // Stays within the size: the mapping beyond is another one and belongs to grow().
  const PageNumber first = index * chunk_pages();
  const auto room =
      std::min<std::size_t>(size_bytes() / kPageBytes - first, kTablePages - first % kTablePages);
  const std::size_t pages = std::min(chunk_pages(), room);
  // Touched before a page is mapped, so that no write to it can be overlooked.
  chunks_.touch(first, room);
  const std::uint64_t spilled = spill_ ? spill_->held_in(first, pages) : 0;
  if (spilled != 0) return fill_with_spill(index, pages, spilled, failure);
  if (!traits_.writes_unmapped) written.reset();
  const std::size_t zero_pages = zeros_from(first, room);
  if (written && zero_pages >= pages) {
    return fill_zero_for_writing(index, *written, pages, failure);
  }
  if (zero_pages == room) return fill_zero(index, room, failure);
  if (zero_pages >= chunk_pages()) {
    return fill_zero(index, zero_pages / chunk_pages() * chunk_pages(), failure);
  }
  return fill_from_source(index, pages, failure, written ? Mapping::by_write : Mapping::now);
}

void PagedMemory::note_arrival(std::size_t index, Mapping mapping) noexcept {
  Chunk& c = chunks_[index];
  c.prefetched.store(mapping == Mapping::by_touch, std::memory_order_relaxed);
  c.only.store(0);
  if (working_set_) working_set_->note(index);
  const std::uint32_t present = present_chunks_.fetch_add(1, std::memory_order_relaxed);
  const std::uint32_t left = c.evicted_at.load(std::memory_order_relaxed);
  // A chunk that is back soon after it left is worth more than one that was used once (a ghost
  // list, as in 2Q, Johnson and Shasha, VLDB 1994; uses without a fault raise no event).
  const bool soon = left != 0 && evicted_.load(std::memory_order_relaxed) - left < present;
  c.heat.store(soon ? 2 : 0, std::memory_order_relaxed);
  counters_.count_arrival(index);
}

bool PagedMemory::fill_from_source(std::size_t index, std::size_t pages,
                                   store::ReadFailure& failure, Mapping mapping) noexcept {
  if (options_.shared) return fill_shared(index, pages, failure, mapping);
  const PageNumber first = index * chunk_pages();
  Scratch& scratch = scratches_.lock();
  bool ok = false;
  {
    const LiveSource::Use source(source_);
    ok = source->try_read(first, pages, scratch.old, failure);
  }
  if (ok) {
    const int error = show_committed(first, pages, scratch.old, mapping);
    if (error != 0) failure = {"no memory for the page", {}, first, error};
    ok = error == 0;
  }
  if (ok) note_arrival(index, mapping);
  scratch.lock.unlock();
  chunks_.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Pages of zeros take no memory before they are touched, but each range of others costs its own
// calls. 0 or errno.
int PagedMemory::show_committed(PageNumber first, std::size_t pages, const std::byte* content,
                                Mapping mapping) noexcept {
  const bool may_leave_out = mapping != Mapping::by_touch && !options_.huge_pages;
  const std::uint64_t filled = may_leave_out ? filled_pages(content, pages) : bits_below(pages);
  const auto count = static_cast<std::size_t>(__builtin_popcountll(filled));
  if (count * kMaxTimesFilled <= pages) {
    const int error = show(first, bits_below(pages), content, filled, nullptr, 0);
    if (options_.writable) add_private(static_cast<std::int64_t>(pages - count));
    return error;
  }
  // Beside a chunk that is there, most pages of this one are likely to be written, too: arming would
  // cost each of them another fault. A page that is not written all the same is compared once.
  const bool likely_written = mapping == Mapping::by_write && has_mapped_neighbour(chunk_of(first));
  int error = mapping != Mapping::now && !likely_written ? prepare_unmapped(first, pages) : 0;
  if (error == 0) error = backing_.write(first, {content, pages * kPageBytes});
  if (error != 0) return error;
  backing_.note_base_copies(first, pages);
  if (options_.writable) backing_.map_around(first, pages);
  return mapping == Mapping::now ? map_present(first, pages) : 0;
}

bool PagedMemory::read_source(PageNumber first, std::size_t pages, std::byte* out, bool& zero,
                              store::ReadFailure& failure) noexcept {
  const LiveSource::Use source(source_);
  zero = source.get() == nullptr || source->zeros_from(first, pages) == pages;
  const bool alone = pages * kMaxTimesFilled <= chunk_pages();
  if (!zero) return source->try_read(first, pages, out, failure, alone);
  std::memset(out, 0, pages * kPageBytes);
  return true;
}

// What reading a chunk's entries of the spill file gave: one bit per page.
struct PagedMemory::Unspilled {
  std::uint64_t base_copies = 0;  // pages with content in scratch.old
  std::uint64_t own = 0;          // pages with content in scratch.own
  std::uint64_t bare = 0;         // those of them whose committed content was not read
};

bool PagedMemory::fill_with_spill(std::size_t index, std::size_t pages, std::uint64_t spilled,
                                  store::ReadFailure& failure) noexcept {
  const bool ok = bring(index, {bits_below(pages), spilled, false}, failure);
  if (ok) note_arrival(index);
  chunks_.settle(index, 1, ok ? Chunk::kPresent : Chunk::kMissing);
  return ok;
}

// Everything is read and checked before a page is shown: after that only memory can run out.
bool PagedMemory::bring(std::size_t index, const Part& part, store::ReadFailure& failure) noexcept {
  const PageNumber first = index * chunk_pages();
  Scratch& scratch = scratches_.lock();
  Unspilled found;
  const std::uint64_t whole =
      part.spilled != 0 ? spill_->whole_in(first, chunk_pages()) & part.spilled : 0;
  bool ok =
      read_committed_part(first, part.wanted & ~whole, scratch, found, failure) &&
      (part.spilled == 0 || read_spilled(first, part.spilled, whole, scratch, found, failure));
  if (ok) {
    const auto at = static_cast<std::size_t>(__builtin_ctzll(part.wanted));
    const int error =
        part.for_writing && found.own == 0
            ? show_for_writing(first + at,
                               found.base_copies != 0 ? scratch.old + at * kPageBytes : nullptr)
            : show(first, part.wanted, scratch.old, found.base_copies, scratch.own, found.own);
    if (error != 0) {
      if (part.spilled != 0) lose("no memory to bring pages back from the spill file");
      failure = {"no memory for the page", {}, first, error};
      ok = false;
    }
  }
  scratch.lock.unlock();
  if (ok) note_unspilled(index, found);
  return ok;
}

// A page as committed; null: zeros. The kernel copies a base copy for the write, which follows.
int PagedMemory::show_for_writing(PageNumber page, const std::byte* base_copy_content) noexcept {
  int error = 0;
  if (base_copy_content == nullptr) {
    error = place_zeros(page, 1);
  } else {
    error = backing_.write(page, {base_copy_content, kPageBytes});
    if (error == 0) backing_.note_base_copies(page, 1);
  }
  if (error == 0) add_private(1);
  return error;
}

// Reads the pages that are `needed`, and what lies between them, into scratch.old.
bool PagedMemory::read_committed_part(PageNumber first, std::uint64_t needed, Scratch& scratch,
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

// REQUIRES: scratch.old has the committed content of all pages that are not whole in the spill file.
bool PagedMemory::read_spilled(PageNumber first, std::uint64_t spilled, std::uint64_t whole,
                               Scratch& scratch, Unspilled& found,
                               store::ReadFailure& failure) noexcept {
  const SpillFile::Loaded loaded = spill_->load(first, spilled, scratch.batch);
  for (std::uint64_t rest = spilled; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(rest));
    SpillFile::Entry entry;
    const int error = spill_->read(loaded, first + i, scratch.record, entry);
    if (error != 0) {
      failure = {"cannot be read back from the spill file", {}, first + i, error};
      return false;
    }
    std::byte* const old = scratch.old + i * kPageBytes;
    std::byte* const own = scratch.own + i * kPageBytes;
    if (spill_->is_taken(first + i)) {
      // The commit at hand has taken it: the base copy is what it recorded, as for all other pages.
      entry.apply_to(old);
      found.base_copies |= 1ULL << i;
      note_newer(first + i);
    } else {
      if ((whole >> i & 1) == 0) std::memcpy(own, old, kPageBytes);
      entry.apply_to(own);
      found.own |= 1ULL << i;
      found.bare |= whole & 1ULL << i;
    }
  }
  return true;
}

void PagedMemory::note_unspilled(std::size_t index, const Unspilled& found) noexcept {
  const PageNumber first = index * chunk_pages();
  for (std::uint64_t rest = found.own; rest != 0; rest &= rest - 1) {
    spill_->drop(first + static_cast<std::size_t>(__builtin_ctzll(rest)));
  }
  // Where zeros take memory, a private page without a base copy has one of zeros below it.
  const std::uint64_t zeros = traits_.zeros_take_memory ? found.own & ~found.base_copies : 0;
  add_private(__builtin_popcountll(found.own) + __builtin_popcountll(zeros));
  bare_.set(first, found.bare);
}

int PagedMemory::place_own(PageNumber first, const std::byte* content, std::uint64_t own) noexcept {
  constexpr int kPatience = 1000;
  return for_each_bit_range(own, [&](std::size_t at, std::size_t n) {
    int error = place_private(first + at, n, content + at * kPageBytes);
    for (int tries = 0; error != 0 && tries < kPatience; ++tries) {
      sched_yield();
      error = place_private(first + at, n, content + at * kPageBytes);
    }
    return error;
  });
}

// Private pages come first: once a page's base copy is in the memfd, another thread may map the
// base copy.
int PagedMemory::show(PageNumber first, std::uint64_t pages, const std::byte* base_copy_content,
                      std::uint64_t base_copies, const std::byte* own_content,
                      std::uint64_t own) noexcept {
  if (const int error = place_own(first, own_content, own); error != 0) return error;
  const int error = for_each_bit_range(base_copies, [&](std::size_t at, std::size_t n) {
    const int e = backing_.write(first + at, {base_copy_content + at * kPageBytes, n * kPageBytes});
    if (e == 0) backing_.note_base_copies(first + at, n);
    return e;
  });
  if (error != 0) return error;
  // Where zeros are mapped like base copies, one call maps both: each call splits a mapping.
  const std::uint64_t present = traits_.zeros_take_memory ? pages : base_copies;
  const int mapped = for_each_bit_range(present & ~own & pages, [&](std::size_t at, std::size_t n) {
    return map_present(first + at, n);
  });
  if (mapped != 0) return mapped;
  const int zeroed =
      for_each_bit_range(~present & ~own & pages,
                         [&](std::size_t at, std::size_t n) { return map_zero(first + at, n); });
  if (zeroed == 0) note_placed(first, own);
  chunks_[chunk_of(first)].only.store(0);
  return zeroed;
}

}  // namespace vellum::region
