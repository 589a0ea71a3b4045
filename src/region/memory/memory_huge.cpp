// Versions in huge pages: one entry of the processor's translation table for 2 MiB.
//
// The kernel copies the pages of a slot into one huge page of the memfd (MADV_COLLAPSE, Linux 6.1,
// madvise(2)). From then on the slot stays: taking a part out of a huge page may leave zeros where
// a hole should be, and a fault would show them as content. So the slot's chunks stay held.
#include <sys/mman.h>

#include <cerrno>

#include "region/memory/memory.hpp"

#ifndef MADV_COLLAPSE  // Debian 12's glibc lacks it
#define MADV_COLLAPSE 25
#endif

namespace vellum::region {

void RegionMemory::make_huge(PageNumber first, std::size_t count) {
  if (!options_.huge_pages || options_.writable || kernel_pages_) return;
  const std::lock_guard lock(huge_mutex_);
  const std::size_t end_slot = (first + count) / kSlotPages;
  for (std::size_t slot = (first + kSlotPages - 1) / kSlotPages; slot < end_slot; ++slot) {
    if ((huge_.size() + 1) * kSlotBytes > pager_->limit_bytes() / 2) return;
    if (huge_.contains(slot)) continue;
    const int error = make_slot_huge(slot);
    if (error == EINVAL) return;  // no such call, or not for this kind of memory
    if (error == 0) huge_.insert(slot);
  }
}

// 0 or errno. A slot with chunks that are all zero stays in small pages: those take no memory.
int RegionMemory::make_slot_huge(std::size_t slot) noexcept {
  const PageNumber first = slot * kSlotPages;
  hold(first, kSlotPages);
  store::ReadFailure failure;
  int error = make_present(first, kSlotPages, failure) ? 0 : EIO;
  for (std::size_t i = 0; i < kSlotPages && error == 0; i += 64) {
    if (backing_.base_copies_in(first + i, 64) != ~0ULL) error = ENODATA;
  }
  if (error == 0 && madvise(base_ + slot * kSlotBytes, kSlotBytes, MADV_COLLAPSE) != 0) {
    error = errno;
  }
  if (error != 0) release(first, kSlotPages);
  return error;
}

}  // namespace vellum::region
