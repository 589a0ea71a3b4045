// Dropping private copies of engine uffd while the program's threads run.
//
// The kernel has no call that drops a page unless it is written meanwhile. The pages are therefore
// closed for writing briefly (mprotect(2)): those that equal their base copies are dropped, and the
// rest is opened again. Reads are never blocked. A thread that writes meanwhile gets SIGSEGV, waits
// in the handler, and writes again.
//
// A system call that writes there meanwhile fails with EFAULT; pinned pages are not closed.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "memory/engine/uffd_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

bool UffdMemory::is_unwritten(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0, written = 0;
  if (log_)
    return find_own(first, count, own) == 0 && own != 0 && !log_->is_any_noted(first, count);
  if (find_written_private(pagemap_, address_of(first), count, own, written) != 0) return false;
  return own != 0 && written == 0;
}

// With a limit for data, reopened pages would count again, and might exceed it. With a fault
// thread, no handler is installed in which a writing thread could wait.
bool UffdMemory::may_drop_copies() noexcept {
  if (options_.fault_thread) return false;
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY) return false;
  return !stay_closed_.load() && handles(SIGSEGV);
}

std::size_t UffdMemory::drop_equal(PageNumber first, std::size_t count) noexcept {
  assert(count != 0 && count <= kTablePages);
  std::uint64_t equal[kTablePages / kMaxChunkPages];
  windows_.fetch_add(1);  // before the pages close: pairs with on_other_fault()
  std::size_t dropped = 0;
  // A failed call may have closed some pages.
  const bool closed = mprotect(address_of(first), count * kPageBytes, PROT_READ) == 0;
  for (std::size_t at = 0, i = 0; closed && at < count; at += kMaxChunkPages, ++i) {
    const std::size_t n = std::min(kMaxChunkPages, count - at);
    equal[i] = find_equal(first + at, n);
    const int error = for_each_bit_range(equal[i], [&](std::size_t from, std::size_t pages) {
      return drop_pages(address_of(first + at + from), pages * kPageBytes);
    });
    if (error != 0) equal[i] = 0;
    dropped += static_cast<std::size_t>(__builtin_popcountll(equal[i]));
  }
  open_again(first, count);
  for (std::size_t at = 0, i = 0; closed && at < count; at += kMaxChunkPages, ++i) {
    show_dropped(first + at, equal[i]);
  }
  return dropped;
}

// Opening joins mappings that closing has split. The kernel may refuse it all the same
// (RLIMIT_DATA, set meanwhile): then page by page, until it succeeds.
void UffdMemory::open_again(PageNumber first, std::size_t count) noexcept {
  constexpr int access = PROT_READ | PROT_WRITE;
  if (mprotect(address_of(first), count * kPageBytes, access) == 0) return;
  stay_closed_.store(true);
  for (PageNumber page = first; page < first + count; ++page) {
    while (mprotect(address_of(page), kPageBytes, access) != 0) sched_yield();
  }
}

// Which pages, at most 64, are private and equal the content below them.
std::uint64_t UffdMemory::find_equal(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0, equal = 0;
  if (find_private(pagemap_, address_of(first), count, false, own) != 0) return 0;
  for (; own != 0; own &= own - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(own));
    if (state_.equals_base_copy(first + i)) equal |= 1ULL << i;
  }
  return equal;
}

// Maps the content below dropped pages. Otherwise a read would fault, in the kernel or, without a
// base copy, in the handler.
void UffdMemory::show_dropped(PageNumber first, std::uint64_t pages) noexcept {
  const std::uint64_t base_copies = state_.backing.base_copies_in(first, kMaxChunkPages) & pages;
  for_each_bit_range(base_copies,
                     [&](std::size_t at, std::size_t n) { return map_present(first + at, n); });
  for_each_bit_range(pages & ~base_copies,
                     [&](std::size_t at, std::size_t n) { return map_zero(first + at, n); });
}

// A write to a page that was closed for writing, perhaps by drop_equal(). The fault is ours if the
// page can be written now, or has been closed again meanwhile.
FaultResult UffdMemory::on_other_fault(PageNumber page, const Fault& fault) noexcept {
  if (!options_.writable || fault.signal_number != SIGSEGV) return FaultResult::not_ours;
  for (;;) {
    const std::uint32_t windows = windows_.load();
    state_.chunks.wait_while_claimed(chunk_of(page));
    // EINVAL: the mapping does not permit it. A page that is missing is another matter.
    if (madvise(address_of(page), kPageBytes, MADV_POPULATE_WRITE) == 0 || errno != EINVAL) {
      return FaultResult::retry;
    }
    if (windows_.load() == windows) return FaultResult::not_ours;
  }
}

}  // namespace vellum::region
