// Versions in huge pages: one entry of the processor's translation table for 2 MiB.
//
// The kernel copies the pages of 2 MiB into one huge page of the memfd (MADV_COLLAPSE, Linux 6.1,
// madvise(2)). From then on the range stays: taking a part out of a huge page may leave zeros where
// a hole should be, and a fault would show them as content. So its chunks stay held.
#include <sys/mman.h>

#include <cerrno>

#include "memory/paged/paged_memory.hpp"

#ifndef MADV_COLLAPSE  // Debian 12's glibc lacks it
#define MADV_COLLAPSE 25
#endif

namespace vellum::region {

void PagedMemory::make_huge(PageNumber first, std::size_t count) {
  if (!options_.huge_pages || options_.writable) return;
  const std::lock_guard lock(huge_mutex_);
  const std::size_t end_table = (first + count) / kTablePages;
  for (std::size_t table = (first + kTablePages - 1) / kTablePages; table < end_table; ++table) {
    if (huge_.contains(table)) continue;
    if (!pager_->try_keep(kTableBytes)) return;
    const int error = make_table_huge(table);
    if (error == 0) huge_.insert(table);
    if (error != 0) pager_->end_keep(kTableBytes);
    if (error == EINVAL) return;  // no such call, or not for this kind of memory
  }
}

// 0 or errno. A range with chunks that are all zero stays in small pages: those take no memory.
int PagedMemory::make_table_huge(std::size_t table) noexcept {
  const PageNumber first = table * kTablePages;
  hold(first, kTablePages);
  store::ReadFailure failure;
  int error = make_present(first, kTablePages, failure) ? 0 : EIO;
  for (std::size_t i = 0; i < kTablePages && error == 0; i += 64) {
    if (backing_.base_copies_in(first + i, 64) != ~0ULL) error = ENODATA;
  }
  if (error == 0 && madvise(address_of(first), kTableBytes, MADV_COLLAPSE) != 0) {
    error = errno;
  }
  if (error != 0) release(first, kTablePages);
  return error;
}

}  // namespace vellum::region
