#include "memory/paged/fill/paged_state.hpp"

#include <bit>

#include "format/records/page_diff.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

PagedState::PagedState(const MemoryOptions& memory_options, EngineTraits engine_traits,
                       LiveSource& live_source, const std::atomic<std::uint64_t>& size_bytes,
                       std::byte* data, MemfdBacking& base_copies)
    : size_bytes_(size_bytes),
      data_(data),
      chunk_shift_(
          static_cast<unsigned>(std::countr_zero(memory_options.chunk_bytes / kPageBytes))),
      options(memory_options),
      traits(engine_traits),
      source(live_source),
      backing(base_copies),
      pager(base_copies.pager()),
      counters(memory_options.counters != nullptr ? *memory_options.counters : uncounted_),
      chunks(memory_options.capacity_bytes, memory_options.chunk_bytes),
      scratches(chunk_pages()),
      bare(memory_options.capacity_bytes),
      absent(memory_options.capacity_bytes) {
  assert(data != nullptr && size_bytes.load() <= memory_options.capacity_bytes);
}

bool PagedState::holds_nothing(PageNumber page) const noexcept {
  const std::size_t index = chunk_of(page);
  if (!chunks.is_missing(index)) return false;
  const PageNumber first = index * chunk_pages();
  const std::size_t pages = pages_of(index);
  if (spilled_in(first, pages) != 0) return false;
  return zeros_from(first, pages) == pages;
}

bool PagedState::worth_reading_ahead(std::size_t index) const noexcept {
  if (index >= chunk_count() || !chunks.is_missing(index)) return false;
  if (chunks[index].advice.load(std::memory_order_relaxed) == Advice::random) return false;
  return !holds_nothing(index * chunk_pages());
}

bool PagedState::equals_base_copy(PageNumber page) const noexcept {
  if (is_bare(page)) return false;
  const std::byte* const base_copy =
      backing.has_base_copy(page) ? backing.base_copy(page) : nullptr;
  format::PageDiff diff;  // its reads are no race to a sanitizer
  format::diff_page(base_copy, address_of(page), diff);
  return diff.lines == 0;
}

void PagedState::note_arrival(std::size_t index, ChunkMapping mapping) noexcept {
  Chunk& chunk = chunks[index];
  chunk.prefetched.store(mapping == ChunkMapping::by_touch, std::memory_order_relaxed);
  chunk.sole_mapped_page.store(0);
  if (working_set) working_set->note(index);
  eviction.note_arrival(index);
  counters.count_arrival(index);
}

void PagedState::note_departure(std::size_t index, bool unused) noexcept {
  assert(!unused || working_set);
  if (unused) working_set->forget(index);
  const PageNumber first = index * chunk_pages();
  if (absent.of(first, chunk_pages()) != 0) partial_fills.note_evicted();
  bare.clear(first, bits_below(chunk_pages()));
  absent.clear(first, bits_below(chunk_pages()));
  eviction.note_departure(index);
  counters.count_departure(index);
  note_memory();
}

}  // namespace vellum::region
