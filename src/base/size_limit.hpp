// base/size_limit.hpp: the largest file that this process may write (RLIMIT_FSIZE, `ulimit -f`).
//
// The kernel kills a process that writes beyond it (SIGXFSZ). That signal belongs to the program.
// Hence the library checks the limit first, and fails as on a full disk (EFBIG).
#pragma once

#include <sys/resource.h>

#include <cerrno>
#include <cstdint>

namespace vellum::base {

// RLIM_INFINITY is the largest number. Read each time: a program may change it.
inline std::uint64_t file_size_limit() noexcept {
  struct rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

// Whether a write at this offset is permitted; if not, sets errno. (The kernel truncates a write
// that starts below the limit.)
inline bool may_write_from(std::uint64_t offset_bytes) noexcept {
  if (offset_bytes < file_size_limit()) return true;
  errno = EFBIG;
  return false;
}

// The same for setting a file's size.
inline bool may_have_size(std::uint64_t size_bytes) noexcept {
  if (size_bytes <= file_size_limit()) return true;
  errno = EFBIG;
  return false;
}

}  // namespace vellum::base
