#include "memory/paged/memory_account.hpp"

#include <algorithm>
#include <exception>
#include <mutex>

#include "base/clock.hpp"
#include "memory/paged/evictor.hpp"
#include "memory/paged/fill/version_sharing.hpp"

namespace vellum::region {

MemoryAccount::~MemoryAccount() {
  const VersionSharing::CountedPages counted = sharing_.counted_pages();
  state_.pager->add_pages(-state_.private_pages.load() - counted.shared - counted.unshared);
}

std::size_t MemoryAccount::make_room(std::size_t pages) noexcept {
  return evictor_.make_room(pages);
}

MemoryUse MemoryAccount::use() noexcept {
  measure();
  MemoryUse use;
  use.limit_bytes = state_.pager->limit_bytes();
  const VersionSharing::CountedPages counted = sharing_.counted_pages();
  const std::int64_t pages = state_.backing.base_copy_pages() + state_.private_pages.load() +
                             counted.shared + counted.unshared;
  use.resident_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(pages, 0)) * kPageBytes;
  use.shared_bytes = static_cast<std::uint64_t>(counted.shared) * kPageBytes;
  use.evicted_bytes = std::uint64_t{state_.eviction.evictions()} * state_.chunk_bytes();
  if (state_.spill) {
    use.spilled_pages = state_.spill->pages();
    use.spill_file_bytes = state_.spill->file_bytes();
    use.spill_written_bytes = state_.spill->put_bytes();
  }
  return use;
}

void MemoryAccount::measure() noexcept {
  const std::lock_guard lock(measuring_);
  // Read once: rollback() may shorten the region meanwhile.
  const PageNumber end = state_.size_pages();
  const std::size_t tables = (end + kTablePages - 1) / kTablePages;
  std::int64_t pages = state_.backing.file_pages() - state_.backing.base_copy_pages();
  for (std::size_t table = state_.chunks.next_touched(0, tables); table < tables;) {
    const std::size_t stop = state_.chunks.next_untouched(table, tables);
    const PageNumber first = table * kTablePages;
    const PageNumber last = std::min<PageNumber>(stop * kTablePages, end);
    const std::int64_t own = state_.options.writable ? engine_.count_own(first, last - first) : 0;
    if (own < 0) return;
    pages += own;
    table = state_.chunks.next_touched(stop, tables);
  }
  state_.add_private(pages - state_.private_pages.load());
}

std::int64_t MemoryAccount::unreported_pages() const noexcept {
  if (!state_.traits.zeros_take_memory) return 0;
  return state_.backing.file_pages() - state_.backing.base_copy_pages();
}

void MemoryAccount::tidy() noexcept {
  constexpr std::int64_t kPauseNs = 500'000'000;
  if (!state_.spill || base::coarse_monotonic_ns() < tidied_ns_ + kPauseNs) return;
  tidied_ns_ = base::coarse_monotonic_ns();
  try {
    for (const PageNumber page : state_.spill->pages_to_move()) move_spilled(page);
  } catch (const std::exception&) {  // out of memory for the list: a later call tries again
    return;
  }
  state_.spill->tidy();
}

void MemoryAccount::move_spilled(PageNumber page) noexcept {
  const std::size_t index = state_.chunk_of(page);
  const std::uint32_t was = state_.chunks.claim_settled(index);
  Scratch& scratch = state_.scratches.lock();
  if (state_.spill->holds(page)) state_.spill->move(page, scratch.record);
  scratch.lock.unlock();
  state_.chunks.settle(index, 1, was);
}

}  // namespace vellum::region
