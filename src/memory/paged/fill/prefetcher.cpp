#include "memory/paged/fill/prefetcher.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "memory/paged/fill/chunk_filler.hpp"

namespace vellum::region {
namespace {

using NumberedChunk = std::pair<std::uint32_t, std::size_t>;

// The chunks in the order of their numbers; adjacent ones are joined. The region's end may cut the
// last chunk.
std::vector<format::PageRange> ranges_of(std::vector<NumberedChunk>& chunks,
                                         std::size_t chunk_pages, std::uint64_t pages) {
  std::sort(chunks.begin(), chunks.end());
  std::vector<format::PageRange> out;
  for (const auto& [number, index] : chunks) {
    const PageNumber first = index * chunk_pages;
    assert(first < pages);
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

void Prefetcher::start() {
  assert(state_.working_set == nullptr);
  const std::size_t half = state_.pager->limit_bytes() / 2 / state_.chunk_bytes();
  const MemoryOptions& options = state_.options;
  state_.working_set =
      std::make_unique<WorkingSet>(options.capacity_bytes / state_.chunk_bytes() + 1,
                                   options.last_working_set, state_.chunk_pages(), half);
}

bool Prefetcher::is_unused(std::size_t index) const noexcept {
  return state_.chunks[index].prefetched.load(std::memory_order_relaxed) != 0 &&
         !engine_.kernel_has_mapped(index * state_.chunk_pages(), state_.chunk_pages());
}

// A chunk that cannot be read is left to the fault that needs it. Nothing is evicted for it, of
// this region or another.
bool Prefetcher::step() noexcept {
  if (state_.working_set == nullptr) return false;
  // Only chunks that were whole at the opening: grow() refills a chunk that the end cuts.
  const std::size_t chunks =
      std::min(state_.size_bytes(), state_.options.size_bytes) / state_.chunk_bytes();
  WorkingSet& set = *state_.working_set;
  WorkingSet::PrefetchCandidate next;
  if (!set.next(chunks, next)) return false;
  if (state_.pager->is_doubtful() || state_.pager->lacking(state_.chunk_pages()) != 0) {
    set.end();
    return false;
  }
  const std::size_t zero_pages = state_.zeros_from(next.index * state_.chunk_pages(),
                                                   (chunks - next.index) * state_.chunk_pages());
  // Zeros are filled by 2 MiB anyway, and count as memory.
  if (zero_pages >= state_.chunk_pages()) {
    set.skip(next, next.index + zero_pages / state_.chunk_pages());
  } else if (!state_.chunks.claim(next.index, Chunk::kMissing) || !filler_.prefetch(next.index)) {
    set.skip(next);
  }
  return true;
}

void Prefetcher::step_while_claimed(std::size_t index) noexcept {
  while (state_.chunks[index].state.load() == Chunk::kClaimed && step()) {
  }
}

std::vector<format::PageRange> Prefetcher::used_ranges() const {
  if (state_.working_set == nullptr) return {};
  std::vector<NumberedChunk> chunks;
  const std::size_t table_chunks = kTablePages / state_.chunk_pages();
  const std::size_t end = state_.chunk_count();
  const std::size_t tables = (end + table_chunks - 1) / table_chunks;
  for (std::size_t table = state_.chunks.next_touched(0, tables); table < tables;
       table = state_.chunks.next_touched(table + 1, tables)) {
    const std::size_t table_end = std::min((table + 1) * table_chunks, end);
    for (std::size_t index = table * table_chunks; index < table_end; ++index) {
      const std::uint32_t number = state_.working_set->number_of(index);
      if (number != 0 && !is_unused(index)) chunks.emplace_back(number, index);
    }
  }
  return ranges_of(chunks, state_.chunk_pages(), state_.size_pages());
}

}  // namespace vellum::region
