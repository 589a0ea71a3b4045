// What is zero without being in memory.
#include <algorithm>

#include "region/memory/paged_memory.hpp"

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
  const std::size_t pages = std::min<std::size_t>(chunk_pages(), size_bytes() / kPageBytes - first);
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

}  // namespace vellum::region
