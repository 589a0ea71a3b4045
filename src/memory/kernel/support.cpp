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

#include "base/shortage.hpp"
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
};

KernelSupport probe() noexcept {
  KernelSupport support;
  const int uffd = open_userfaultfd();
  if (uffd < 0) support.write_protection = errno;
  const Trial trial;
  support.page_scan = trial.scan_error();
  support.engine_uffd = uffd >= 0 && trial.finds_a_store(uffd);
  if (uffd >= 0) close(uffd);
  const int shared = support.engine_uffd ? open_userfaultfd(true) : -1;
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
  if (!base::is_shortage(found.write_protection) && !base::is_shortage(found.page_scan))
    known = found;
  return found;
}

std::string why_no_uffd(const KernelSupport& support) {
  assert(!support.engine_uffd);
  switch (support.write_protection) {
    case 0:
      break;
    case ENOTSUP:
      return "this kernel's userfaultfd has no asynchronous write protection (Linux 6.7 has)";
    case ENOSYS:
      return "this kernel has no userfaultfd";
    case EPERM:
    case EACCES:
      return "this process may not use userfaultfd (a container's filter of system calls may "
             "forbid "
             "it)";
    default:
      return fmt::format("userfaultfd: {}", std::strerror(support.write_protection));
  }
  if (support.page_scan != 0)
    return fmt::format("PAGEMAP_SCAN (Linux 6.7): {}", std::strerror(support.page_scan));
  return "a trial of userfaultfd found no store";
}

}  // namespace vellum::region
