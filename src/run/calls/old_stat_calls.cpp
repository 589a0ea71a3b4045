// stat(2) and similar calls as in glibc until 2.33: functions that take the structure's version
// first. Programs built for those versions still call them (Node.js 20, JDK 25, Python wheels).
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/error_number.hpp"
#include "run/files/files.hpp"
#include "run/process/real.hpp"

namespace {

// glibc accepts both for the one structure of this machine.
constexpr int kKernelVersion = 0, kLinuxVersion = 1;

bool is_known(int version) { return version == kKernelVersion || version == kLinuxVersion; }

}  // namespace

using vellum::base::as_result;

// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names.
#define VELLUM_OLD_STAT(suffix)                                                                    \
  VELLUM_PRELOAD int __fxstat##suffix(int version, int fd, struct stat##suffix* status) noexcept { \
    return is_known(version) ? fstat##suffix(fd, status) : as_result(EINVAL);                      \
  }                                                                                                \
  VELLUM_PRELOAD int __xstat##suffix(int version, const char* path,                                \
                                     struct stat##suffix* status) noexcept {                       \
    return is_known(version) ? stat##suffix(path, status) : as_result(EINVAL);                     \
  }                                                                                                \
  VELLUM_PRELOAD int __lxstat##suffix(int version, const char* path,                               \
                                      struct stat##suffix* status) noexcept {                      \
    return is_known(version) ? lstat##suffix(path, status) : as_result(EINVAL);                    \
  }                                                                                                \
  VELLUM_PRELOAD int __fxstatat##suffix(int version, int directory, const char* path,              \
                                        struct stat##suffix* status, int flags) noexcept {         \
    return is_known(version) ? fstatat##suffix(directory, path, status, flags)                     \
                             : as_result(EINVAL);                                                  \
  }
VELLUM_OLD_STAT()
VELLUM_OLD_STAT(64)
// NOLINTEND(bugprone-reserved-identifier)
