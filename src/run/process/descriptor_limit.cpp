#include "run/process/descriptor_limit.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

// The descriptors of the program, the image, the journal, the image's touched ranges and the active
// pack, and temporarily one more and two of directories.
constexpr std::size_t kMaxOfAFile = 8;

// Based on the limit at the start of the program.
int least_own() noexcept {
  static const int least = [] {
    rlimit limit;
    const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return known ? static_cast<int>(std::min<rlim_t>(512, limit.rlim_cur / 2)) : 0;
  }();
  return least;
}

bool raise_limit() noexcept {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int duplicate(int fd) noexcept {
  const int own = VELLUM_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, least_own());
  if (own >= 0 || !raise_limit()) return own;
  return VELLUM_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, least_own());
}

}  // namespace

int moved_to_high_number(int fd) noexcept {
  if (fd < 0 || fd >= least_own()) return fd;
  const int own = duplicate(fd);
  const int error = errno;
  VELLUM_REAL(close)(fd);
  errno = error;
  return own;
}

// The file's descriptors have been closed again.
int cause_of(int error) noexcept {
  if (error != ENOMEM) return error;
  const int some = VELLUM_REAL(open)("/dev/null", O_RDONLY | O_CLOEXEC);
  std::array<int, kMaxOfAFile> more;
  for (int& fd : more) fd = duplicate(some);
  const bool none_left = more.back() < 0;
  for (const int fd : more)
    if (fd >= 0) VELLUM_REAL(close)(fd);
  if (some >= 0) VELLUM_REAL(close)(some);
  return none_left ? EMFILE : error;
}

std::string limit_behind(int error) {
  const ReentrancyGuard inside;
  rlimit limit;
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return "this process may have " + std::to_string(limit.rlim_max) +
           " descriptors (ulimit -Hn), and each file that is open for writing takes 4 or 5";
  std::string most;
  if (error == ENOMEM && std::ifstream("/proc/sys/vm/max_map_count") >> most)
    return "out of memory, or of mappings: a process may have " + most +
           " (sysctl vm.max_map_count), and each file that is open for writing takes 3 to 5";
  return {};
}

}  // namespace vellum::preload
