#include "memory/paged/huge_pages.hpp"

#include <sys/mman.h>

#include <cassert>
#include <cerrno>

#include "memory/paged/range_loader.hpp"

#ifndef MADV_COLLAPSE  // Debian 12's glibc lacks it
#define MADV_COLLAPSE 25
#endif

namespace vellum::region {

void HugePages::collapse(PageNumber first, std::size_t count) {
  if (!state_.options.huge_pages || state_.options.writable) return;
  const std::lock_guard lock(mutex_);
  const std::size_t end_table = (first + count) / kTablePages;
  for (std::size_t table = (first + kTablePages - 1) / kTablePages; table < end_table; ++table) {
    if (tables_.contains(table)) continue;
    if (!state_.pager->try_keep(kTableBytes)) return;
    const int error = collapse_table(table);
    if (error == 0) tables_.insert(table);
    if (error != 0) state_.pager->end_keep(kTableBytes);
    if (error == EINVAL) return;  // no such call, or not for this kind of memory
  }
}

// 0 or errno. A range with zero pages keeps small pages: those take no memory.
int HugePages::collapse_table(std::size_t table) noexcept {
  const PageNumber first = table * kTablePages;
  const std::size_t begin = state_.chunk_of(first), chunks = kTablePages / state_.chunk_pages();
  for (std::size_t i = 0; i < chunks; ++i) state_.chunks.hold(begin + i);
  store::ReadFailure failure;
  int error = ranges_.load(first, kTablePages, failure) ? 0 : EIO;
  for (std::size_t i = 0; i < kTablePages && error == 0; i += 64) {
    if (state_.backing.base_copies_in(first + i, 64) != ~0ULL) error = ENODATA;
  }
  if (error == 0 && madvise(state_.address_of(first), kTableBytes, MADV_COLLAPSE) != 0) {
    error = errno;
  }
  for (std::size_t i = 0; error != 0 && i < chunks; ++i) state_.chunks.release(begin + i);
  return error;
}

}  // namespace vellum::region
