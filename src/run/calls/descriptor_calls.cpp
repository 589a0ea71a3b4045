// Calls that create, close and query descriptors: close(2), dup(2), fcntl(2), lseek(2), flock(2).
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>

#include "run/files/files.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

// Also for programs that close descriptors blindly, as daemons do.
int close_file(int fd) {
  Files& files = Files::instance();
  if (!files.active() || (!ReentrancyGuard::is() && files.shares_memory()))
    return VELLUM_REAL(close)(fd);
  if (ReentrancyGuard::is()) {
    if (files.own_descriptors().has(fd)) files.own_descriptors().note(fd, false);
  } else if (files.own_descriptors().has(fd)) {
    errno = EBADF;
    return -1;
  } else {
    files.closed(fd);
  }
  return VELLUM_REAL(close)(fd);
}

int duplicated(int from, int to) {
  if (to >= 0 && to != from && !ReentrancyGuard::is()) Files::instance().duplicated(from, to);
  return to;
}

// The kernel closes the file that was open under the new number.
int prepare_target(int from, int to) {
  if (from == to || ReentrancyGuard::is()) return 0;
  Files& files = Files::instance();
  if (files.own_descriptors().has(to)) {
    errno = EBUSY;
    return -1;
  }
  if (fcntl(from, F_GETFD) >= 0) files.closed(to);
  return 0;
}

void set_flags(int fd, void* flags) {
  if (ReentrancyGuard::is() || (reinterpret_cast<long>(flags) & O_APPEND) == 0) return;
  Descriptors::note_append(fd);
}

// The file on disk does not reflect the content of memory. Everything counts as data up to the end,
// which is the only hole, as on a file system without holes (lseek(2)).
off_t seek(int fd, off_t offset, int whence) {
  const bool asks = whence == SEEK_END || whence == SEEK_DATA || whence == SEEK_HOLE;
  const auto live = asks ? Files::instance().live(fd) : nullptr;
  if (live == nullptr) return VELLUM_REAL(lseek)(fd, offset, whence);
  const auto size = static_cast<off_t>(live->size_bytes());
  if (whence == SEEK_END) {
    if (offset > 0 && size > INT64_MAX - offset) return errno = EOVERFLOW, -1;
    return VELLUM_REAL(lseek)(fd, size + offset, SEEK_SET);
  }
  if (offset < 0 || offset >= size) return errno = ENXIO, -1;
  return VELLUM_REAL(lseek)(fd, whence == SEEK_DATA ? offset : size, SEEK_SET);
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::Files;

VELLUM_PRELOAD int close(int fd) { return vellum::preload::close_file(fd); }

VELLUM_PRELOAD int close_range(unsigned first, unsigned last, int flags) noexcept {
  Files& files = Files::instance();
  if (!files.active() || flags != 0 || files.shares_memory())
    return VELLUM_REAL(close_range)(first, last, flags);
  while (first <= last) {
    const unsigned known = vellum::preload::Descriptors::next(first);
    if (known > last || known == UINT_MAX) return VELLUM_REAL(close_range)(first, last, flags);
    if (known > first) VELLUM_REAL(close_range)(first, known - 1, flags);
    vellum::preload::close_file(static_cast<int>(known));
    first = known + 1;
  }
  return 0;
}
VELLUM_PRELOAD void closefrom(int first) noexcept {
  close_range(first > 0 ? static_cast<unsigned>(first) : 0, ~0U, 0);
}

VELLUM_PRELOAD int dup(int fd) noexcept {
  return vellum::preload::duplicated(fd, VELLUM_REAL(dup)(fd));
}
VELLUM_PRELOAD int dup2(int fd, int to) noexcept {
  if (vellum::preload::prepare_target(fd, to) != 0) return -1;
  return vellum::preload::duplicated(fd, VELLUM_REAL(dup2)(fd, to));
}
VELLUM_PRELOAD int dup3(int fd, int to, int flags) noexcept {
  if (vellum::preload::prepare_target(fd, to) != 0) return -1;
  return vellum::preload::duplicated(fd, VELLUM_REAL(dup3)(fd, to, flags));
}

#define VELLUM_FCNTL(name)                                                \
  VELLUM_PRELOAD int name(int fd, int command, ...) {                     \
    va_list arguments;                                                    \
    va_start(arguments, command);                                         \
    void* const argument = va_arg(arguments, void*);                      \
    va_end(arguments);                                                    \
    const int result = VELLUM_REAL(name)(fd, command, argument);          \
    if (command == F_SETFL) vellum::preload::set_flags(fd, argument);     \
    const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC; \
    return copies ? vellum::preload::duplicated(fd, result) : result;     \
  }
VELLUM_FCNTL(fcntl)
VELLUM_FCNTL(fcntl64)

VELLUM_PRELOAD off_t lseek(int fd, off_t offset, int whence) noexcept {
  return vellum::preload::seek(fd, offset, whence);
}
VELLUM_PRELOAD off64_t lseek64(int fd, off64_t offset, int whence) noexcept {
  return vellum::preload::seek(fd, offset, whence);
}

// Other names of these functions in the C library: NOLINTBEGIN(bugprone-reserved-identifier)
VELLUM_PRELOAD int __close(int fd) { return close(fd); }
VELLUM_PRELOAD int __dup2(int fd, int to) noexcept { return dup2(fd, to); }
VELLUM_PRELOAD off_t __lseek(int fd, off_t offset, int whence) noexcept {
  return lseek(fd, offset, whence);
}
VELLUM_PRELOAD off64_t llseek(int fd, off64_t offset, int whence) noexcept {
  return lseek64(fd, offset, whence);
}
VELLUM_PRELOAD int __fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(fd, command, argument);
}
// NOLINTEND(bugprone-reserved-identifier)

// A lock belongs to the open file: for a reopened descriptor, to the original one.
VELLUM_PRELOAD int flock(int fd, int operation) noexcept {
  const int original =
      vellum::preload::ReentrancyGuard::is() ? -1 : Files::instance().original_of(fd);
  return VELLUM_REAL(flock)(original >= 0 ? original : fd, operation);
}
