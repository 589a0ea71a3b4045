// memory/kernel/kernel.hpp: memory calls that glibc 2.36 and Debian 12's kernel headers lack.
//
// userfaultfd(2): Documentation/admin-guide/mm/userfaultfd.rst; PAGEMAP_SCAN:
// Documentation/admin-guide/mm/pagemap.rst (Linux 6.7). Everything here is async-signal-safe and
// preserves nothing but its return value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace vellum::region {

// What the first write to an armed page does. synchronous: it is a fault, which SIGBUS or a thread
// serves by disarm() (Linux 5.19). asynchronous: the kernel disarms the page itself (Linux 6.7).
enum class Tracking { none, synchronous, asynchronous };

// Opens a userfaultfd in SIGBUS mode; close(2) closes it. Returns the descriptor, or -1 with errno
// (EPERM, ENOSYS; ENOTSUP when a feature is missing). With `of_shared_file`, for
// register_shared_range(); ENOTSUP also on processors for which the kernel lacks it.
int open_userfaultfd(Tracking tracking, bool of_shared_file = false) noexcept;

// The same without SIGBUS: a thread that accesses a missing page waits for an answer
// (fault_thread.hpp). `serves_kernel`: system calls wait, too, which needs a privilege
// (CAP_SYS_PTRACE, the sysctl vm.unprivileged_userfaultfd, or access to /dev/userfaultfd);
// otherwise they fail with EFAULT.
int open_fault_userfaultfd(Tracking tracking, bool& serves_kernel,
                           bool of_shared_file = false) noexcept;
// Reads the next fault; false: no thread waits. `address` is its page's.
bool read_fault(int uffd, std::byte*& address, bool& is_write) noexcept;
// Lets the threads that wait for a page try again.
void wake_waiters(int uffd, std::byte* page) noexcept;
// Accesses to a page that is not mapped raise SIGBUS from now on, waiting accesses included. Where
// the kernel cannot poison a page (before Linux 6.6), an empty file replaces it.
void poison_page(int uffd, std::byte* page) noexcept;

// Registers [address, address + bytes). Missing pages raise SIGBUS, or wait. With `track_writes`,
// pages can be armed. 0 or errno.
int register_range(int uffd, void* address, std::size_t bytes, bool track_writes) noexcept;

// Registers a read-only mapping of a file that other processes fill: pages that are not mapped
// raise SIGBUS, or wait, whether the file has them or not (UFFDIO_REGISTER_MODE_MINOR, Linux 5.14).
// 0 or errno.
int register_shared_range(int uffd, void* address, std::size_t bytes) noexcept;

// Maps the zero page over a range. REQUIRES: no thread uses it, as mapped pages may be dropped. 0
// or errno.
int map_zero_pages(int uffd, std::byte* address, std::size_t bytes) noexcept;

// Places private pages of zeros where no page is mapped; they count as written. 0 or errno.
int copy_zero_pages(int uffd, std::byte* address, std::size_t bytes) noexcept;

// Maps the file pages that are present in the memfd behind a range, armed when `armed` (Linux 6.4).
// Pages that are already mapped stay. 0 or errno.
int map_file_pages(int uffd, std::byte* address, std::size_t bytes, bool armed) noexcept;

// Arms a range, also where no page is mapped: the kernel arms the pages that it maps there. Unlike
// a scan, it does not interrupt other processors where nothing is mapped. 0 or errno.
int arm(int uffd, std::byte* address, std::size_t bytes) noexcept;
// Undoes it, and lets the threads that wait for the pages try again. 0 or errno.
int disarm(int uffd, std::byte* address, std::size_t bytes) noexcept;

// Maps the pages that the file behind a range has, as reads would: pages that are armed stay so. 0
// or errno.
int map_by_reading(std::byte* address, std::size_t bytes) noexcept;

// Places private copies of pages; they count as written. A page that is already mapped stays. 0 or
// errno.
int copy_pages(int uffd, std::byte* address, std::size_t bytes, const std::byte* content) noexcept;

// Adds new pages to the file behind a shared mapping, which a userfaultfd has registered, and maps
// them. Each becomes visible as a whole, as by write(2); but a memfd lets one thread write at a
// time (inode_lock), and here threads work in parallel. Returns how many bytes were added, from the
// front: it stops at a page that the file has, or at an error.
std::size_t add_file_pages(int uffd, std::byte* address,
                           std::span<const std::byte> content) noexcept;

// Drops the private pages of a range, also those that the program has locked (mlock(2)). 0 or
// errno.
int drop_pages(std::byte* address, std::size_t bytes) noexcept;

// Moves the private pages of a range to another address in one step: later accesses to the range
// find no page. The old mapping at `to` is removed. 0 or errno (mremap(2), MREMAP_DONTUNMAP, Linux
// 5.13 for file mappings).
int move_private(std::byte* from, std::size_t bytes, std::byte* to) noexcept;

// Which pages of a range, at most 64, are private and not the zero page: one bit per page.
// `swapped` includes those that the kernel has swapped out; where the range was ever armed, holes
// then look the same. Without PAGEMAP_SCAN, /proc/self/pagemap is read. 0 or errno.
int find_private(int pagemap_fd, std::byte* begin, std::size_t pages, bool swapped,
                 std::uint64_t& mask) noexcept;
// The same, of pages that are present, and which of these were written since they were last armed.
int find_written_private(int pagemap_fd, std::byte* begin, std::size_t pages, std::uint64_t& own,
                         std::uint64_t& written) noexcept;
// Counts those that are present in a range of any size, as find_private() does. -1 with errno.
std::int64_t count_private(int pagemap_fd, std::byte* begin, std::byte* end) noexcept;
// Whether an entry of /proc/self/pagemap, 8 bytes per page, is of a page that is present or swapped
// out and not a file's (Documentation/admin-guide/mm/pagemap.rst).
inline constexpr bool is_private_line(std::uint64_t line) noexcept {
  constexpr std::uint64_t kFile = 1ULL << 61, kSwapped = 1ULL << 62, kPresent = 1ULL << 63;
  return (line & (kPresent | kSwapped)) != 0 && (line & kFile) == 0;
}
// Whether any page of a range, at most 64, is mapped; true when that is unknown.
bool any_mapped(int pagemap_fd, const std::byte* begin, std::size_t pages) noexcept;
// For a range without zero pages: which pages are private, present or swapped out. Reads
// /proc/self/pagemap, 8 bytes per page.
int find_private_slowly(int pagemap_fd, const std::byte* begin, std::size_t pages,
                        std::uint64_t& mask) noexcept;

// A range that PAGEMAP_SCAN found. The layout is the kernel's struct page_region.
struct ScanRange {
  std::uint64_t begin = 0, end = 0;  // addresses
  std::uint64_t categories = 0;
};

// In one pass and without losing a write, finds the pages in [begin, end) written since they were
// last armed, and arms them again. May also report pages that are not present. Fills `out`;
// `resume` is where to continue (== end: done). Returns the number of ranges, or -1 with errno.
long scan_written(int pagemap_fd, std::byte* begin, std::byte* end, std::span<ScanRange> out,
                  std::byte*& resume) noexcept;

// For a private mapping of a file, whose missing pages the kernel fills: only asynchronous write
// protection. The first returns a descriptor, or -1 with errno; the second 0 or errno.
int open_write_tracker() noexcept;
int register_writes(int uffd, void* address, std::size_t bytes) noexcept;
// Undoes either registration. 0 or errno.
int unregister_range(int uffd, void* address, std::size_t bytes) noexcept;

// Finds the private pages of a private file mapping. With `arm`, finds only those written since
// they were last armed, and arms them again in the same pass without losing a write; other pages
// stay as they are. Otherwise like scan_written().
long scan_private(int pagemap_fd, std::byte* begin, std::byte* end, bool arm,
                  std::span<ScanRange> out, std::byte*& resume) noexcept;

// Counts the pages in [begin, end) of the process of this pagemap that were written since they were
// last armed. Arms none. Nothing: not all of them are tracked, or the process may not be inspected,
// or this kernel lacks it.
std::optional<std::uint64_t> count_written(int pagemap_fd, std::uint64_t begin,
                                           std::uint64_t end) noexcept;

}  // namespace vellum::region
