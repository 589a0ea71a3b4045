// region/kernel/kernel.hpp: the memory calls that glibc 2.36 and Debian 12's kernel headers do not
// know yet.
//
// userfaultfd(2): Documentation/admin-guide/mm/userfaultfd.rst; PAGEMAP_SCAN:
// Documentation/admin-guide/mm/pagemap.rst (Linux 6.7). Everything here is async-signal-safe and
// preserves nothing but its return value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vellum::region {

// A userfaultfd in SIGBUS mode with asynchronous write protection. Closed with close(2).
// Returns the descriptor, or -1 with errno (EPERM, ENOSYS; ENOTSUP when a feature is missing).
int open_userfaultfd() noexcept;

// Registers [address, address + bytes): missing pages raise SIGBUS; with `track_writes`, write
// protection is asynchronous: a first write clears the mark in the kernel, without a signal. 0 or
// errno.
int register_range(int uffd, void* address, std::size_t bytes, bool track_writes) noexcept;

// Maps the zero page over a range. REQUIRES: nothing there is in use: what is mapped may be
// dropped. 0 or errno.
int map_zero_pages(int uffd, std::byte* address, std::size_t bytes) noexcept;

// Maps a private page of zeros, unless a page is mapped there already. 0 or errno.
int copy_zero_page(int uffd, std::byte* address) noexcept;

// Maps the file pages that are present in the memfd behind a range, armed when `armed`. Pages that
// are mapped already stay. 0 or errno.
int map_file_pages(int uffd, std::byte* address, std::size_t bytes, bool armed) noexcept;

// Puts a private copy of a page there, which counts as written, unless a page is mapped there
// already. 0 or errno.
int copy_page(int uffd, std::byte* address, const std::byte* content) noexcept;

// Moves the private pages of a range to another place, in one step: who touches the range
// afterwards finds nothing there. What was mapped at `to` goes. 0 or errno (mremap(2),
// MREMAP_DONTUNMAP, Linux 5.13 for file mappings).
int move_away(std::byte* from, std::size_t bytes, std::byte* to) noexcept;

// Which pages of a range are private and not the zero page: a bit a page, of at most 64. With
// `swapped`, those that the kernel has swapped out, too; where the range was ever armed, holes then
// look the same. 0 or errno.
int find_private(int pagemap_fd, std::byte* begin, std::size_t pages, bool swapped,
                 std::uint64_t& mask) noexcept;
// How many are present in a range of any size. -1 with errno.
std::int64_t count_private(int pagemap_fd, std::byte* begin, std::byte* end) noexcept;
// What a line of /proc/self/pagemap, 8 bytes a page, says: the page is there or swapped out, and is
// not a file's (Documentation/admin-guide/mm/pagemap.rst).
inline constexpr bool is_private_line(std::uint64_t line) noexcept {
  constexpr std::uint64_t kFile = 1ULL << 61, kSwapped = 1ULL << 62, kPresent = 1ULL << 63;
  return (line & (kPresent | kSwapped)) != 0 && (line & kFile) == 0;
}
// Whether a page of a range, of at most 64, is mapped; true when that cannot be told.
bool any_mapped(int pagemap_fd, const std::byte* begin, std::size_t pages) noexcept;
// find_private() on kernels without PAGEMAP_SCAN, by /proc/self/pagemap: 8 bytes a page are read.
int find_private_slowly(int pagemap_fd, const std::byte* begin, std::size_t pages,
                        std::uint64_t& mask) noexcept;

// A range that PAGEMAP_SCAN found. The layout is the kernel's struct page_region.
struct ScanRange {
  std::uint64_t begin = 0, end = 0;  // addresses
  std::uint64_t categories = 0;
};

// Finds pages written since they were last armed in [begin, end), and arms them again, in one pass
// without losing a write. Pages that are not present may be reported too. Fills `out` and sets
// `resume` to where to go on (== end: done). Returns the number of ranges, or -1 with errno.
long scan_written(int pagemap_fd, std::byte* begin, std::byte* end, std::span<ScanRange> out,
                  std::byte*& resume) noexcept;

// For a private mapping of a file, whose missing pages the kernel brings in: asynchronous write
// protection alone. A descriptor, or -1 with errno; 0 or errno.
int open_write_tracker() noexcept;
int register_writes(int uffd, void* address, std::size_t bytes) noexcept;
// Takes either back. 0 or errno.
int unregister_range(int uffd, void* address, std::size_t bytes) noexcept;

// Finds the pages of a private file mapping that are its own, not the file's. With `arm`, only
// those written since they were last armed, which it arms again in the same pass without losing a
// write; others are not touched. The rest as scan_written().
long scan_private(int pagemap_fd, std::byte* begin, std::byte* end, bool arm,
                  std::span<ScanRange> out, std::byte*& resume) noexcept;

// Whether this kernel has it all: probed once, by doing it on two pages.
bool uffd_engine_works() noexcept;

}  // namespace vellum::region
