// Private copies of engine uffd that go back while the program's threads go on.
//
// The kernel has no call that drops a page unless it is written meanwhile. So the pages are closed
// for writing for a moment (mprotect(2)): those that equal their base copies are dropped, and the
// rest open again. Reads go on all the time. A thread that writes meanwhile gets SIGSEGV, waits in
// the handler, and writes again.
//
// A system call that writes there meanwhile fails with EFAULT; pinned pages are left alone.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "memory/engine/uffd_memory.hpp"
#include "memory/paging/bits.hpp"

namespace vellum::region {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

bool UffdMemory::is_unwritten(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0, written = 0;
  if (find_written_private(pagemap_, address_of(first), count, own, written) != 0) return false;
  return own != 0 && written == 0;
}

// With a limit for data, pages that opened again would count anew, and might find no room.
// With a fault thread, nobody would wait in a handler.
bool UffdMemory::may_drop_copies() noexcept {
  if (options_.fault_thread) return false;
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY) return false;
  return !stay_closed_.load() && handles(SIGSEGV);
}

std::size_t UffdMemory::drop_equal(PageNumber first, std::size_t count) noexcept {
  std::uint64_t equal[kTablePages / kMaxChunkPages];
  windows_.fetch_add(1);  // before the pages close: pairs with on_other_fault()
  std::size_t dropped = 0;
  // A call that fails may have closed a part.
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

// Opening joins mappings that closing has split. The kernel may refuse it all the same while other
// threads have taken the room (RLIMIT_DATA, set meanwhile): page by page, and until it succeeds.
void UffdMemory::open_again(PageNumber first, std::size_t count) noexcept {
  constexpr int access = PROT_READ | PROT_WRITE;
  if (mprotect(address_of(first), count * kPageBytes, access) == 0) return;
  stay_closed_.store(true);
  for (PageNumber page = first; page < first + count; ++page) {
    while (mprotect(address_of(page), kPageBytes, access) != 0) sched_yield();
  }
}

// Which pages, at most 64, are private and equal what shows when they are dropped.
std::uint64_t UffdMemory::find_equal(PageNumber first, std::size_t count) noexcept {
  std::uint64_t own = 0, equal = 0;
  if (find_private(pagemap_, address_of(first), count, false, own) != 0) return 0;
  for (; own != 0; own &= own - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(own));
    if (state_.equals_base_copy(first + i)) equal |= 1ULL << i;
  }
  return equal;
}

// Maps what shows now. Otherwise a read would fault, in the kernel or, where there is no base copy,
// in the handler.
void UffdMemory::show_dropped(PageNumber first, std::uint64_t pages) noexcept {
  const std::uint64_t base_copies = state_.backing.base_copies_in(first, kMaxChunkPages) & pages;
  for_each_bit_range(base_copies,
                     [&](std::size_t at, std::size_t n) { return map_present(first + at, n); });
  for_each_bit_range(pages & ~base_copies,
                     [&](std::size_t at, std::size_t n) { return map_zero(first + at, n); });
}

// A write to a page that was closed for writing, perhaps by drop_equal(). What tells is whether the
// page can be written now, unless it has been closed again meanwhile.
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
