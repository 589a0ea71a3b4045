#include "run/files/own_descriptors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

// Device and inode; zeros if the descriptor is not open.
DescriptorIdentity identity_of(int fd) {
  struct stat status{};
  VELLUM_REAL(fstat)(fd, &status);
  return {status.st_dev, status.st_ino};
}

}  // namespace

std::array<DescriptorIdentity, Descriptors::kMaxDescriptors> OwnDescriptors::identities_;

void OwnDescriptors::note(int fd, bool is) {
  if (fd < 0 || fd >= Descriptors::kMaxDescriptors) return;
  if (!is) return Descriptors::clear(fd);
  // Does not allocate: an allocator may be opening a file.
  Descriptors::set(fd, Descriptors::kLibrarys);
  const auto identity = identity_of(fd);
  const std::lock_guard lock(mutex_);
  identities_[static_cast<std::size_t>(fd)] = identity;
  any_ = true;
}

bool OwnDescriptors::has(int fd) {
  if (Descriptors::facts(fd) != Descriptors::kLibrarys) return false;
  const auto identity = identity_of(fd);
  {
    const std::lock_guard lock(mutex_);
    if (identities_[static_cast<std::size_t>(fd)] == identity) return true;
  }
  Descriptors::clear(fd);
  return false;
}

int OwnDescriptors::reopened(const DescriptorIdentity& file) {
  const std::lock_guard lock(mutex_);
  for (unsigned fd = Descriptors::next(0); fd != UINT_MAX; fd = Descriptors::next(fd + 1)) {
    if (identities_[fd] != file ||
        Descriptors::facts(static_cast<int>(fd)) != Descriptors::kLibrarys)
      continue;
    char link[32];
    std::snprintf(link, sizeof link, "/proc/self/fd/%u", fd);
    const int own = VELLUM_REAL(open)(link, O_RDWR | O_CLOEXEC);
    if (own >= 0) return own;
  }
  return -1;
}

void OwnDescriptors::make_pipe() {
  if (!any_ || pipe2(forking_, O_CLOEXEC) != 0) forking_[0] = forking_[1] = -1;
}

void OwnDescriptors::close_all() {
  for (unsigned at = Descriptors::next(0); at != UINT_MAX; at = Descriptors::next(at + 1)) {
    const int fd = static_cast<int>(at);
    if (Descriptors::facts(fd) != Descriptors::kLibrarys) continue;
    Descriptors::clear(fd);
    if (identity_of(fd) == identities_[at]) VELLUM_REAL(close)(fd);
  }
}

void OwnDescriptors::await_child(bool child) {
  if (forking_[1] < 0) return;
  char none = 0;
  VELLUM_REAL(close)(forking_[1]);
  if (!child)
    while (VELLUM_REAL(read)(forking_[0], &none, 1) < 0 && errno == EINTR) {
    }
  VELLUM_REAL(close)(forking_[0]);
}

}  // namespace vellum::preload
