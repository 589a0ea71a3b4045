#include "memory/kernel/support.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/error_number.hpp"
#include "base/size_limit.hpp"
#include "memory/kernel/kernel.hpp"

namespace vellum::region {
namespace {

constexpr std::size_t kProbePageBytes = 4096;

// A private mapping of two pages of a file in memory: one that the file has, and a hole.
struct Trial {
  const int memfd = memfd_create("vellum-probe", MFD_CLOEXEC);
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::byte* base = nullptr;
  int error = 0;  // errno of a failed mapping

  Trial() {
    const std::byte one{1};
    void* map = MAP_FAILED;
    if (memfd >= 0 && pagemap >= 0 && base::may_have_size(2 * kProbePageBytes) &&
        ftruncate(memfd, 2 * kProbePageBytes) == 0 && pwrite(memfd, &one, 1, 0) == 1) {
      map = mmap(nullptr, 2 * kProbePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd, 0);
    }
    if (map != MAP_FAILED) {
      base = static_cast<std::byte*>(map);
    } else {
      error = errno;
    }
  }
  ~Trial() {
    if (base != nullptr) munmap(base, 2 * kProbePageBytes);
    if (pagemap >= 0) close(pagemap);
    if (memfd >= 0) close(memfd);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  int scan_error() const noexcept {
    if (base == nullptr) return error;
    std::byte* resume = nullptr;
    ScanRange range;
    return scan_private(pagemap, base, base + kProbePageBytes, false, {&range, 1}, resume) < 0
               ? errno
               : 0;
  }

  // Asynchronously.
  bool finds_a_store(int uffd) const noexcept {
    ScanRange ranges[4];
    std::byte* resume = nullptr;
    if (base == nullptr || register_range(uffd, base, 2 * kProbePageBytes, true) != 0 ||
        map_file_pages(uffd, base, kProbePageBytes, true) != 0 ||
        map_zero_pages(uffd, base + kProbePageBytes, kProbePageBytes) != 0 ||
        scan_written(pagemap, base, base + 2 * kProbePageBytes, ranges, resume) < 0)
      return false;
    *static_cast<volatile std::byte*>(base) = std::byte{2};
    return scan_written(pagemap, base, base + 2 * kProbePageBytes, ranges, resume) == 1 &&
           ranges[0].begin == reinterpret_cast<std::uintptr_t>(base) &&
           ranges[0].end == ranges[0].begin + kProbePageBytes;
  }

  // Synchronously: a system call that writes to an armed page fails, and raises no signal.
  bool stops_a_store(int uffd, bool& maps_armed) const noexcept {
    std::byte* const hole = base + kProbePageBytes;
    if (base == nullptr || register_range(uffd, base, 2 * kProbePageBytes, true) != 0) return false;
    maps_armed = map_file_pages(uffd, base, kProbePageBytes, true) == 0;
    if (!maps_armed &&
        (arm(uffd, base, kProbePageBytes) != 0 || map_by_reading(base, kProbePageBytes) != 0))
      return false;
    if (arm(uffd, hole, kProbePageBytes) != 0 || map_zero_pages(uffd, hole, kProbePageBytes) != 0 ||
        pread(memfd, base, 1, 0) != -1 || errno != EFAULT || pread(memfd, hole, 1, 0) != 1)
      return false;
    return disarm(uffd, base, kProbePageBytes) == 0 && pread(memfd, base, 1, 0) == 1;
  }
};

// errno of opening it; 0: it works.
int try_to_open(Tracking tracking, int& uffd) noexcept {
  uffd = open_userfaultfd(tracking);
  return uffd < 0 ? errno : 0;
}

KernelSupport probe() noexcept {
  KernelSupport support;
  int uffd = -1;
  support.asynchronous = try_to_open(Tracking::asynchronous, uffd);
  {
    const Trial trial;
    support.page_scan = trial.scan_error();
    if (uffd >= 0 && trial.finds_a_store(uffd)) support.tracking = Tracking::asynchronous;
    if (uffd >= 0) close(uffd);
  }
  support.maps_armed = support.tracking == Tracking::asynchronous;
  support.synchronous = try_to_open(Tracking::synchronous, uffd);
  if (support.tracking == Tracking::none && uffd >= 0) {
    const Trial trial;
    if (trial.stops_a_store(uffd, support.maps_armed)) support.tracking = Tracking::synchronous;
  }
  if (uffd >= 0) close(uffd);
  const int shared =
      support.tracking != Tracking::none ? open_userfaultfd(support.tracking, true) : -1;
  support.shares = shared >= 0;
  if (shared >= 0) close(shared);
  return support;
}

}  // namespace

KernelSupport kernel_support() noexcept {
  static std::mutex mutex;
  static std::optional<KernelSupport> known;
  const std::lock_guard lock(mutex);
  if (known) return *known;
  const KernelSupport found = probe();
  if (!base::is_shortage(found.asynchronous) && !base::is_shortage(found.synchronous) &&
      !base::is_shortage(found.page_scan))
    known = found;
  return found;
}

std::string why_no_uffd(const KernelSupport& support) {
  assert(support.tracking == Tracking::none);
  switch (support.synchronous) {
    case 0:
      return "a trial of userfaultfd found no store";
    case ENOTSUP:
      return "this kernel's userfaultfd has no write protection of shared memory (Linux 5.19 has)";
    case ENOSYS:
      return "this kernel has no userfaultfd";
    case EPERM:
    case EACCES:
      return "this process may not use userfaultfd (a container's filter of system calls may "
             "forbid "
             "it)";
    default:
      return fmt::format("userfaultfd: {}", std::strerror(support.synchronous));
  }
}

std::string why_synchronous(const KernelSupport& support) {
  assert(support.tracking == Tracking::synchronous);
  if (support.asynchronous != 0)
    return "this kernel's userfaultfd has no asynchronous write protection (Linux 6.7 has)";
  if (support.page_scan != 0)
    return fmt::format("PAGEMAP_SCAN (Linux 6.7): {}", std::strerror(support.page_scan));
  return "a trial of userfaultfd found no store";
}

}  // namespace vellum::region
