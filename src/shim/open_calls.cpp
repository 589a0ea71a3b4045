// open(2) and its like. glibc has a second of each for 64-bit offsets, which are the same here, and
// a third that programs compiled with _FORTIFY_SOURCE call.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "shim/files.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

int open_copy(int directory, const char* copy, int flags, mode_t mode, bool is_target) {
  if (!is_target || !writes(flags)) return VELLUM_REAL(openat)(directory, copy, flags, mode);
  std::fprintf(stderr, "vellum run: %s: an old version is to be read only\n", copy);
  errno = EROFS;
  return -1;
}

// A truncation would take the last commit away at once: it waits for the next.
int open_file(int directory, const char* path, int flags, mode_t mode) {
  if (Inside::is()) {
    const int fd = VELLUM_REAL(openat)(directory, path, flags, mode);
    if (fd >= 0) Files::instance().note_librarys(fd, true);
    return fd;
  }
  Files& files = Files::instance();
  if (!files.active() || path == nullptr || (flags & O_PATH) != 0)
    return VELLUM_REAL(openat)(directory, path, flags, mode);
  std::string storage;
  const char* const instead = files.redirected(directory, path, storage);
  if (instead != path) return open_copy(directory, instead, flags, mode, files.is_copy(instead));
  const bool cut = (flags & O_TRUNC) != 0 && files.names_target(directory, path);
  const int fd = VELLUM_REAL(openat)(directory, path, cut ? flags & ~O_TRUNC : flags, mode);
  return fd < 0 ? fd : files.opened(fd, path, flags, cut);
}

// mkstemp(3) and its like: the name is known afterwards only.
int made(int fd, const char* path) {
  Files& files = Files::instance();
  return fd < 0 || Inside::is() || !files.active() ? fd : files.opened(fd, path, O_RDWR, false);
}

mode_t mode_of(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

}  // namespace
}  // namespace vellum::shim

using vellum::shim::open_file;

#define VELLUM_OPEN(name)                                        \
  VELLUM_SHIM int name(const char* path, int flags, ...) {       \
    va_list arguments;                                           \
    va_start(arguments, flags);                                  \
    const mode_t mode = vellum::shim::mode_of(flags, arguments); \
    va_end(arguments);                                           \
    return open_file(AT_FDCWD, path, flags, mode);               \
  }
#define VELLUM_OPENAT(name)                                               \
  VELLUM_SHIM int name(int directory, const char* path, int flags, ...) { \
    va_list arguments;                                                    \
    va_start(arguments, flags);                                           \
    const mode_t mode = vellum::shim::mode_of(flags, arguments);          \
    va_end(arguments);                                                    \
    return open_file(directory, path, flags, mode);                       \
  }
VELLUM_OPEN(open)
VELLUM_OPEN(open64)
VELLUM_OPENAT(openat)
VELLUM_OPENAT(openat64)

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names.
VELLUM_SHIM int __open_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
VELLUM_SHIM int __open64_2(const char* path, int flags) {
  return open_file(AT_FDCWD, path, flags, 0);
}
VELLUM_SHIM int __openat_2(int directory, const char* path, int flags) {
  return open_file(directory, path, flags, 0);
}
VELLUM_SHIM int __openat64_2(int directory, const char* path, int flags) {
  return open_file(directory, path, flags, 0);
}
// NOLINTEND(bugprone-reserved-identifier)

VELLUM_SHIM int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
VELLUM_SHIM int creat64(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

#define VELLUM_MAKE(suffix)                                                                     \
  VELLUM_SHIM int mkstemp##suffix(char* pattern) {                                              \
    return vellum::shim::made(VELLUM_REAL(mkstemp##suffix)(pattern), pattern);                  \
  }                                                                                             \
  VELLUM_SHIM int mkostemp##suffix(char* pattern, int flags) {                                  \
    return vellum::shim::made(VELLUM_REAL(mkostemp##suffix)(pattern, flags), pattern);          \
  }                                                                                             \
  VELLUM_SHIM int mkstemps##suffix(char* pattern, int behind) {                                 \
    return vellum::shim::made(VELLUM_REAL(mkstemps##suffix)(pattern, behind), pattern);         \
  }                                                                                             \
  VELLUM_SHIM int mkostemps##suffix(char* pattern, int behind, int flags) {                     \
    return vellum::shim::made(VELLUM_REAL(mkostemps##suffix)(pattern, behind, flags), pattern); \
  }
VELLUM_MAKE()
VELLUM_MAKE(64)
