// How much memory and spill file a region takes: the counts that its pager and memory_use() see.
//
// The pager is told of pages as they come and go. What the kernel does by itself (a first write
// makes a private copy) is found by counting, now and then.
#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "memory/paged/paged_memory.hpp"

namespace vellum::region {

MemoryUse PagedMemory::use() noexcept {
  measure();
  MemoryUse use;
  use.limit_bytes = pager_->limit_bytes();
  const std::int64_t shared = shared_pages_.load();
  const std::int64_t pages =
      backing_.base_copy_pages() + private_pages_.load() + shared + unshared_pages_.load();
  use.resident_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) * kPageBytes;
  use.shared_bytes = static_cast<std::uint64_t>(shared) * kPageBytes;
  use.evicted_bytes = std::uint64_t{evicted_.load()} * chunk_bytes();
  if (spill_) {
    use.spilled_pages = spill_->pages();
    use.spill_file_bytes = spill_->file_bytes();
    use.spill_written_bytes = spill_->put_bytes();
  }
  return use;
}

void PagedMemory::stay_within_limit() noexcept {
  if (const std::size_t lacking = pager_->lacking(0); lacking != 0) make_room(lacking);
}

void PagedMemory::measure() noexcept {
  const std::lock_guard lock(measuring_);
  // Read once: rollback() may shorten the region meanwhile.
  const PageNumber end = size_bytes() / kPageBytes;
  const std::size_t tables = (end + kTablePages - 1) / kTablePages;
  std::int64_t pages = backing_.file_pages() - backing_.base_copy_pages();
  for (std::size_t table = chunks_.next_touched(0, tables); table < tables;) {
    const std::size_t stop = chunks_.next_untouched(table, tables);
    const PageNumber first = table * kTablePages;
    const PageNumber last = std::min<PageNumber>(stop * kTablePages, end);
    const std::int64_t own = options_.writable ? count_own(first, last - first) : 0;
    if (own < 0) return;
    pages += own;
    table = chunks_.next_touched(stop, tables);
  }
  add_private(pages - private_pages_.load());
}

std::int64_t PagedMemory::untold_pages() const noexcept {
  return traits_.zeros_take_memory ? backing_.file_pages() - backing_.base_copy_pages() : 0;
}

void PagedMemory::tidy() noexcept {
  constexpr std::int64_t kPauseNs = 500'000'000;
  if (!spill_ || base::coarse_monotonic_ns() < tidied_ns_ + kPauseNs) return;
  tidied_ns_ = base::coarse_monotonic_ns();
  try {
    for (const PageNumber page : spill_->pages_to_move()) move_spilled(page);
  } catch (const std::exception&) {  // no memory for a list of pages: another time
    return;
  }
  spill_->tidy();
}

void PagedMemory::move_spilled(PageNumber page) noexcept {
  const std::size_t index = chunk_of(page);
  const std::uint32_t was = claim_settled(index);
  Scratch& scratch = scratches_.lock();
  if (spill_->holds(page)) spill_->move(page, scratch.record);
  scratch.lock.unlock();
  chunks_.settle(index, 1, was);
}

}  // namespace vellum::region
