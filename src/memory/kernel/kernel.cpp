#include "memory/kernel/kernel.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>

namespace vellum::region {
namespace {

// Linux 6.7 ABI; Debian 12's headers are those of 6.1.
constexpr std::uint64_t kFeatureWpUnpopulated = 1U << 13;
constexpr std::uint64_t kFeaturePoison = 1U << 14;
constexpr std::uint64_t kFeatureWpAsync = 1U << 15;
constexpr std::uint64_t kContinueModeWp = 2;
constexpr int kUserModeOnly = 1;  // UFFD_USER_MODE_ONLY: allowed without privilege
constexpr int kUffdFlags = O_CLOEXEC | O_NONBLOCK;
struct PoisonArg {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t updated;
};
constexpr unsigned long kPoison = _IOWR(UFFDIO, 0x08, PoisonArg);
constexpr unsigned long kNewUserfaultfd = _IO(UFFDIO, 0x00);  // of /dev/userfaultfd

struct ScanArg {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr std::uint64_t kPageIsWritten = 1U << 1;
constexpr std::uint64_t kPageIsFile = 1U << 2;
constexpr std::uint64_t kPageIsPresent = 1U << 3;
constexpr std::uint64_t kPageIsSwapped = 1U << 4;
constexpr std::uint64_t kPageIsZero = 1U << 5;
constexpr std::uint64_t kScanWpMatching = 1U << 0;
constexpr std::uint64_t kScanCheckTracked = 1U << 1;  // EPERM where pages are not tracked
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanArg);

constexpr std::size_t kPage = 4096;

// Runs a mapping ioctl over a range. `issue` returns the bytes it mapped, or -1 with errno.
// `on_exists` is called where a page is already mapped, and returns how many bytes to skip.
template <typename Issue, typename OnExists>
int map_range(std::byte* address, std::size_t bytes, Issue issue, OnExists on_exists) noexcept {
  assert(reinterpret_cast<std::uintptr_t>(address) % kPage == 0 && bytes % kPage == 0);
  std::size_t step = bytes;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t n = std::min(step, bytes - done);
    const std::int64_t mapped = issue(address + done, n);
    if (mapped > 0) {
      done += static_cast<std::size_t>(mapped);
    } else if (errno == EEXIST) {
      done += on_exists(address + done, n);
    } else if (errno == ENOENT && step > kPage) {
      step = kPage;  // the kernel refuses a range over two mappings that it did not join
    } else if (errno != EAGAIN) {  // EAGAIN: the address space changes concurrently (mmap, fork)
      return errno;
    }
  }
  return 0;
}

std::size_t skip_page(std::byte*, std::size_t) noexcept { return kPage; }

// UFFDIO_WRITEPROTECT of a range. 0 or errno.
int write_protect(int uffd, std::byte* address, std::size_t bytes, std::uint64_t mode) noexcept {
  assert(bytes != 0);
  const auto issue = [uffd, mode](std::byte* at, std::size_t n) {
    uffdio_writeprotect request{};
    request.range.start = reinterpret_cast<std::uintptr_t>(at);
    request.range.len = n;
    request.mode = mode;
    return ioctl(uffd, UFFDIO_WRITEPROTECT, &request) == 0 ? static_cast<std::int64_t>(n) : -1;
  };
  return map_range(address, bytes, issue, skip_page);
}

// UFFDIO_COPY, for map_range(): how many bytes are copied, or -1.
std::int64_t copy(int uffd, std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  uffdio_copy request{};
  request.dst = reinterpret_cast<std::uintptr_t>(to);
  request.src = reinterpret_cast<std::uintptr_t>(from);
  request.len = bytes;
  if (ioctl(uffd, UFFDIO_COPY, &request) == 0) return static_cast<std::int64_t>(bytes);
  return request.copy > 0 ? request.copy : -1;
}

int new_userfaultfd(int flags) noexcept {
  return static_cast<int>(syscall(SYS_userfaultfd, kUffdFlags | flags));
}

// -1 where this process may not have one that serves system calls.
int new_userfaultfd_for_kernel() noexcept {
  const int fd = new_userfaultfd(0);
  if (fd >= 0) return fd;
  const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  const int from_device = ioctl(device, kNewUserfaultfd, kUffdFlags);
  close(device);
  return from_device;
}

// Those of shared memory, for private mappings of a memfd.
std::uint64_t features_of(Tracking tracking) noexcept {
  switch (tracking) {
    case Tracking::asynchronous:
      return UFFD_FEATURE_WP_HUGETLBFS_SHMEM | kFeatureWpUnpopulated | kFeatureWpAsync;
    case Tracking::synchronous:
      return UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
    case Tracking::none:
      break;
  }
  return 0;
}

// Owns the descriptor from now on; returns it, or -1 with errno.
int with_features(int fd, std::uint64_t features) noexcept {
  if (fd < 0) return -1;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (ioctl(fd, UFFDIO_API, &api) != 0) {
    close(fd);
    errno = ENOTSUP;
    return -1;
  }
  return fd;
}

int register_mode(int uffd, void* address, std::size_t bytes, std::uint64_t mode) noexcept {
  uffdio_register reg{};
  reg.range.start = reinterpret_cast<std::uintptr_t>(address);
  reg.range.len = bytes;
  reg.mode = mode;
  return ioctl(uffd, UFFDIO_REGISTER, &reg) == 0 ? 0 : errno;
}

// Where a scan continues. `walk_end` is unreliable: the kernel copies its results by 512 ranges,
// notes its position each time, but does not note the end after the last copy (fs/proc/task_mmu.c,
// do_pagemap_scan). Unless `out` is full, the whole range was scanned.
std::uint64_t scanned_to(const ScanArg& arg, std::span<const ScanRange> out, long found) noexcept {
  if (static_cast<std::size_t>(found) < out.size()) return arg.end;
  return std::max(arg.walk_end, out.back().end);
}

// Of any process's addresses. `resume` may be `begin` itself.
long scan(int pagemap_fd, ScanArg& arg, std::span<ScanRange> out, std::uint64_t begin,
          std::uint64_t end, std::uint64_t& resume) noexcept {
  assert(begin <= end && !out.empty());
  arg.size = sizeof arg;
  arg.start = begin;
  arg.end = end;
  arg.vec = reinterpret_cast<std::uintptr_t>(out.data());
  arg.vec_len = out.size();
  long n;
  do {
    n = ioctl(pagemap_fd, kPagemapScan, &arg);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) resume = scanned_to(arg, out, n);
  return n;
}

long scan(int pagemap_fd, ScanArg& arg, std::span<ScanRange> out, std::byte* begin, std::byte* end,
          std::byte*& resume) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  std::uint64_t scanned = first;
  const long n = scan(pagemap_fd, arg, out, first, reinterpret_cast<std::uintptr_t>(end), scanned);
  if (n >= 0) resume = begin + (scanned - first);
  return n;
}

// Finds own pages: private, and not the zero page. `where`: present, or also swapped out. (Markers
// that a scan has left on holes look like swapped pages.) Neighbours with the same `returned`
// categories form one range.
long scan_own(int pagemap_fd, std::byte* begin, std::byte* end, std::uint64_t where,
              std::uint64_t returned, std::span<ScanRange> out, std::byte*& resume) noexcept {
  ScanArg arg{};
  arg.category_inverted = kPageIsFile | kPageIsZero;
  arg.category_mask = kPageIsFile | kPageIsZero;
  arg.category_anyof_mask = where;
  arg.return_mask = returned;
  return scan(pagemap_fd, arg, out, begin, end, resume);
}

// Lines of /proc/self/pagemap, 8 bytes per page. 0 or errno.
int read_lines(int pagemap_fd, const std::byte* begin, std::span<std::uint64_t> lines) noexcept {
  const auto offset = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(begin) / kPage * 8);
  const auto bytes = static_cast<ssize_t>(lines.size_bytes());
  const ssize_t n = pread(pagemap_fd, lines.data(), lines.size_bytes(), offset);
  return n == bytes ? 0 : n < 0 ? errno : EIO;
}

// As is_private_line(), but zero pages are none: unlike a private page, the zero page is not mapped
// exclusively.
bool is_own_line(std::uint64_t line, bool swapped) noexcept {
  constexpr std::uint64_t kExclusive = 1ULL << 56, kSwapped = 1ULL << 62;
  return is_private_line(line) && (line & (kExclusive | (swapped ? kSwapped : 0))) != 0;
}

// find_private() without PAGEMAP_SCAN.
int find_own_lines(int pagemap_fd, const std::byte* begin, std::size_t pages, bool swapped,
                   std::uint64_t& mask) noexcept {
  std::uint64_t lines[64];
  mask = 0;
  if (const int error = read_lines(pagemap_fd, begin, {lines, pages}); error != 0) return error;
  for (std::size_t i = 0; i < pages; ++i) {
    mask |= std::uint64_t{is_own_line(lines[i], swapped)} << i;
  }
  return 0;
}

// count_private() without PAGEMAP_SCAN.
std::int64_t count_own_lines(int pagemap_fd, const std::byte* begin,
                             const std::byte* end) noexcept {
  std::int64_t pages = 0;
  for (const std::byte* at = begin; at < end;) {
    const auto n = std::min<std::size_t>(static_cast<std::size_t>(end - at) / kPage, 64);
    std::uint64_t mask = 0;
    errno = find_own_lines(pagemap_fd, at, n, false, mask);
    if (errno != 0) return -1;
    pages += std::popcount(mask);
    at += n * kPage;
  }
  return pages;
}

}  // namespace

int open_userfaultfd(Tracking tracking, bool of_shared_file) noexcept {
  const std::uint64_t minor = of_shared_file ? UFFD_FEATURE_MINOR_SHMEM : 0;
  return with_features(new_userfaultfd(kUserModeOnly), features_of(tracking) | UFFD_FEATURE_SIGBUS |
                                                           UFFD_FEATURE_MISSING_SHMEM | minor);
}

int open_fault_userfaultfd(Tracking tracking, bool& serves_kernel, bool of_shared_file) noexcept {
  const std::uint64_t minor = of_shared_file ? UFFD_FEATURE_MINOR_SHMEM : 0;
  const std::uint64_t features = features_of(tracking) | UFFD_FEATURE_MISSING_SHMEM | minor;
  const auto open_with = [&](std::uint64_t more) {
    int fd = new_userfaultfd_for_kernel();
    serves_kernel = fd >= 0;
    if (fd < 0) fd = new_userfaultfd(kUserModeOnly);
    return with_features(fd, features | more);
  };
  const int fd = open_with(kFeaturePoison);
  return fd < 0 && errno == ENOTSUP ? open_with(0) : fd;
}

int open_write_tracker() noexcept {
  return with_features(new_userfaultfd(kUserModeOnly),
                       UFFD_FEATURE_WP_HUGETLBFS_SHMEM | kFeatureWpAsync);
}

bool read_fault(int uffd, std::byte*& address, bool& is_write) noexcept {
  uffd_msg message;
  for (;;) {
    const ssize_t n = read(uffd, &message, sizeof message);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof message) return false;
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    address = reinterpret_cast<std::byte*>(message.arg.pagefault.address & ~(kPage - 1));
    is_write = (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0;
    return true;
  }
}

void wake_waiters(int uffd, std::byte* page) noexcept {
  uffdio_range range{reinterpret_cast<std::uintptr_t>(page), kPage};
  ioctl(uffd, UFFDIO_WAKE, &range);
}

namespace {

bool replace_by_empty_file(std::byte* page) noexcept {
  const int file = memfd_create("vellum-lost", MFD_CLOEXEC);
  if (file < 0) return false;
  constexpr int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_FIXED;
  const bool done = mmap(page, kPage, access, flags, file, 0) != MAP_FAILED;
  close(file);
  return done;
}

}  // namespace

void poison_page(int uffd, std::byte* page) noexcept {
  PoisonArg arg{};
  arg.range = {reinterpret_cast<std::uintptr_t>(page), kPage};
  while (ioctl(uffd, kPoison, &arg) != 0) {
    if (errno == EAGAIN) continue;
    if (replace_by_empty_file(page)) wake_waiters(uffd, page);
    return;
  }
}

int register_range(int uffd, void* address, std::size_t bytes, bool track_writes) noexcept {
  const std::uint64_t writes = track_writes ? UFFDIO_REGISTER_MODE_WP : 0;
  return register_mode(uffd, address, bytes, UFFDIO_REGISTER_MODE_MISSING | writes);
}

int register_shared_range(int uffd, void* address, std::size_t bytes) noexcept {
  return register_mode(uffd, address, bytes,
                       UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR);
}

int register_writes(int uffd, void* address, std::size_t bytes) noexcept {
  return register_mode(uffd, address, bytes, UFFDIO_REGISTER_MODE_WP);
}

int unregister_range(int uffd, void* address, std::size_t bytes) noexcept {
  uffdio_range range{};
  range.start = reinterpret_cast<std::uintptr_t>(address);
  range.len = bytes;
  return ioctl(uffd, UFFDIO_UNREGISTER, &range) == 0 ? 0 : errno;
}

int map_zero_pages(int uffd, std::byte* address, std::size_t bytes) noexcept {
  const auto issue = [uffd](std::byte* at, std::size_t n) {
    uffdio_zeropage zero{};
    zero.range.start = reinterpret_cast<std::uintptr_t>(at);
    zero.range.len = n;
    if (ioctl(uffd, UFFDIO_ZEROPAGE, &zero) == 0) return static_cast<std::int64_t>(n);
    return static_cast<std::int64_t>(zero.zeropage > 0 ? zero.zeropage : -1);
  };
  // No page is mapped, but a scan has left its marker on every hole, and the kernel counts the
  // marker as a page here (UFFDIO_COPY and UFFDIO_CONTINUE do not). After all markers are removed
  // one call maps the rest, though a concurrent scan may add markers again.
  int attempts = 0;
  const auto drop_markers = [uffd, &attempts](std::byte* at, std::size_t n) -> std::size_t {
    uffdio_writeprotect off{};
    off.range.start = reinterpret_cast<std::uintptr_t>(at);
    off.range.len = n;
    if (++attempts <= 4 && ioctl(uffd, UFFDIO_WRITEPROTECT, &off) == 0) return 0;
    copy_zero_pages(uffd, at, kPage);
    return kPage;
  };
  return map_range(address, bytes, issue, drop_markers);
}

int copy_zero_pages(int uffd, std::byte* address, std::size_t bytes) noexcept {
  static std::byte zeros[16 * kPage];  // never written: always the kernel's zero page
  return map_range(
      address, bytes,
      [uffd](std::byte* at, std::size_t n) {
        return copy(uffd, at, zeros, std::min(n, sizeof zeros));
      },
      skip_page);
}

int copy_pages(int uffd, std::byte* address, std::size_t bytes, const std::byte* content) noexcept {
  return map_range(
      address, bytes,
      [=](std::byte* at, std::size_t n) { return copy(uffd, at, content + (at - address), n); },
      skip_page);
}

std::size_t add_file_pages(int uffd, std::byte* address,
                           std::span<const std::byte> content) noexcept {
  std::size_t done = 0;
  while (done < content.size()) {
    const std::int64_t n = copy(uffd, address + done, content.data() + done, content.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EAGAIN) {  // EAGAIN: the address space changes concurrently (mmap, fork)
      break;
    }
  }
  return done;
}

int arm(int uffd, std::byte* address, std::size_t bytes) noexcept {
  return write_protect(uffd, address, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

int disarm(int uffd, std::byte* address, std::size_t bytes) noexcept {
  return write_protect(uffd, address, bytes, 0);
}

int map_by_reading(std::byte* address, std::size_t bytes) noexcept {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
  while (madvise(address, bytes, kPopulateRead) != 0) {
    if (errno != EAGAIN && errno != EINTR) return errno;
  }
  return 0;
}

int map_file_pages(int uffd, std::byte* address, std::size_t bytes, bool armed) noexcept {
  const auto issue = [uffd, armed](std::byte* at, std::size_t n) {
    uffdio_continue cont{};
    cont.range.start = reinterpret_cast<std::uintptr_t>(at);
    cont.range.len = n;
    cont.mode = armed ? kContinueModeWp : 0;
    if (ioctl(uffd, UFFDIO_CONTINUE, &cont) == 0) return static_cast<std::int64_t>(n);
    return static_cast<std::int64_t>(cont.mapped > 0 ? cont.mapped : -1);
  };
  return map_range(address, bytes, issue, skip_page);
}

long scan_written(int pagemap_fd, std::byte* begin, std::byte* end, std::span<ScanRange> out,
                  std::byte*& resume) noexcept {
  ScanArg arg{};
  arg.flags = kScanWpMatching;
  // Exactly this combination takes the kernel's fast path: 0.35 ms for 1 GiB; with other
  // categories, 0.8 to 4 ms.
  arg.category_mask = kPageIsWritten;
  arg.return_mask = kPageIsWritten;
  return scan(pagemap_fd, arg, out, begin, end, resume);
}

long scan_private(int pagemap_fd, std::byte* begin, std::byte* end, bool arm,
                  std::span<ScanRange> out, std::byte*& resume) noexcept {
  ScanArg arg{};
  // The fast path needs only the markers, but reports and arms holes, too.
  arg.flags = arm ? kScanWpMatching : 0;
  arg.category_inverted = kPageIsFile;
  arg.category_mask = kPageIsFile | (arm ? kPageIsWritten : 0);
  arg.category_anyof_mask = kPageIsPresent | kPageIsSwapped;
  arg.return_mask = kPageIsFile;  // one range for neighbours of all other categories
  return scan(pagemap_fd, arg, out, begin, end, resume);
}

int drop_pages(std::byte* address, std::size_t bytes) noexcept {
  assert(reinterpret_cast<std::uintptr_t>(address) % kPage == 0 && bytes % kPage == 0);
  constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18
  if (madvise(address, bytes, kDontNeedLocked) == 0) return 0;
  return madvise(address, bytes, MADV_DONTNEED) == 0 ? 0 : errno;
}

int move_private(std::byte* from, std::size_t bytes, std::byte* to) noexcept {
  constexpr int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  return mremap(from, bytes, bytes, flags, to) == MAP_FAILED ? errno : 0;
}

int find_private(int pagemap_fd, std::byte* begin, std::size_t pages, bool swapped,
                 std::uint64_t& mask) noexcept {
  assert(pages <= 64);
  ScanRange ranges[64];
  const std::uint64_t where = kPageIsPresent | (swapped ? kPageIsSwapped : 0);
  std::byte* const end = begin + pages * kPage;
  const auto base = reinterpret_cast<std::uintptr_t>(begin);
  mask = 0;
  for (std::byte* at = begin; at < end;) {
    std::byte* resume = end;
    const long n = scan_own(pagemap_fd, at, end, where, kPageIsFile, ranges, resume);
    if (n < 0 && errno == ENOTTY) return find_own_lines(pagemap_fd, begin, pages, swapped, mask);
    if (n < 0) return errno;
    for (long i = 0; i < n; ++i) {
      for (std::uint64_t a = ranges[i].begin; a < ranges[i].end; a += kPage) {
        mask |= 1ULL << ((a - base) / kPage);
      }
    }
    at = resume;
  }
  return 0;
}

int find_written_private(int pagemap_fd, std::byte* begin, std::size_t pages, std::uint64_t& own,
                         std::uint64_t& written) noexcept {
  assert(pages <= 64);
  ScanRange ranges[64];  // enough for one call
  std::byte* resume = nullptr;
  const long n = scan_own(pagemap_fd, begin, begin + pages * kPage, kPageIsPresent, kPageIsWritten,
                          ranges, resume);
  if (n < 0) return errno;
  const auto base = reinterpret_cast<std::uintptr_t>(begin);
  own = written = 0;
  for (long i = 0; i < n; ++i) {
    for (std::uint64_t a = ranges[i].begin; a < ranges[i].end; a += kPage) {
      const std::uint64_t bit = 1ULL << ((a - base) / kPage);
      own |= bit;
      if ((ranges[i].categories & kPageIsWritten) != 0) written |= bit;
    }
  }
  return 0;
}

std::int64_t count_private(int pagemap_fd, std::byte* begin, std::byte* end) noexcept {
  ScanRange ranges[512];
  std::int64_t pages = 0;
  for (std::byte* at = begin; at < end;) {
    std::byte* resume = end;
    const long n = scan_own(pagemap_fd, at, end, kPageIsPresent, kPageIsFile, ranges, resume);
    if (n < 0 && errno == ENOTTY) return count_own_lines(pagemap_fd, begin, end);
    if (n < 0) return -1;
    for (long i = 0; i < n; ++i) {
      pages += static_cast<std::int64_t>((ranges[i].end - ranges[i].begin) / kPage);
    }
    at = resume;
  }
  return pages;
}

std::optional<std::uint64_t> count_written(int pagemap_fd, std::uint64_t begin,
                                           std::uint64_t end) noexcept {
  ScanRange ranges[512];
  std::uint64_t pages = 0;
  for (std::uint64_t at = begin; at < end;) {
    ScanArg arg{};
    arg.flags = kScanCheckTracked;
    arg.category_inverted = kPageIsFile | kPageIsZero;
    arg.category_mask = kPageIsWritten | kPageIsPresent | kPageIsFile | kPageIsZero;
    arg.return_mask = kPageIsWritten;
    const long n = scan(pagemap_fd, arg, ranges, at, end, at);
    if (n < 0) return std::nullopt;
    for (long i = 0; i < n; ++i) pages += (ranges[i].end - ranges[i].begin) / kPage;
  }
  return pages;
}

bool any_mapped(int pagemap_fd, const std::byte* begin, std::size_t pages) noexcept {
  assert(pages <= 64);
  constexpr std::uint64_t kPresent = 1ULL << 63;
  std::uint64_t lines[64];
  if (read_lines(pagemap_fd, begin, {lines, pages}) != 0) return true;
  return std::any_of(lines, lines + pages,
                     [](std::uint64_t line) { return (line & kPresent) != 0; });
}

int find_private_slowly(int pagemap_fd, const std::byte* begin, std::size_t pages,
                        std::uint64_t& mask) noexcept {
  assert(pages <= 64);
  std::uint64_t lines[64];
  mask = 0;
  if (const int error = read_lines(pagemap_fd, begin, {lines, pages}); error != 0) return error;
  for (std::size_t i = 0; i < pages; ++i) {
    mask |= std::uint64_t{is_private_line(lines[i])} << i;
  }
  return 0;
}

}  // namespace vellum::region
