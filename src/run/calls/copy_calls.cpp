// Copies between files in the kernel, which would bypass the memory of live files: sendfile(2),
// copy_file_range(2), splice(2), and clones.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <vector>

#include "interfaces/mapped_io/descriptor_io.hpp"
#include "memory/kernel/guarded_copy.hpp"
#include "run/files/files.hpp"
#include "run/process/real.hpp"

namespace vellum::preload {
namespace {

bool is_live(int fd) { return Files::instance().live(fd) != nullptr; }

// Makes a partial copy: callers repeat until they have everything.
ssize_t copy(int from, off_t* from_offset, int to, off_t* to_offset, std::size_t bytes) {
  std::vector<char> buffer(std::min<std::size_t>(bytes, 1u << 20));
  const off_t from_now = VELLUM_REAL(lseek)(from, 0, SEEK_CUR);
  const ssize_t got =
      pread(from, buffer.data(), buffer.size(), from_offset != nullptr ? *from_offset : from_now);
  if (got <= 0) return got;
  const auto count = static_cast<std::size_t>(got);
  const ssize_t put = to_offset != nullptr ? pwrite(to, buffer.data(), count, *to_offset)
                                           : write(to, buffer.data(), count);
  if (put <= 0) return put;
  if (from_offset != nullptr) {
    *from_offset += put;
  } else {
    VELLUM_REAL(lseek)(from, from_now + put, SEEK_SET);
  }
  if (to_offset != nullptr) *to_offset += put;
  return put;
}

}  // namespace
}  // namespace vellum::preload

using vellum::preload::is_live;

VELLUM_PRELOAD ssize_t sendfile(int to, int from, off_t* offset, size_t bytes) noexcept {
  if (!is_live(from) && !is_live(to)) return VELLUM_REAL(sendfile)(to, from, offset, bytes);
  return vellum::preload::copy(from, offset, to, nullptr, bytes);
}
VELLUM_PRELOAD ssize_t sendfile64(int to, int from, off64_t* offset, size_t bytes) noexcept {
  return sendfile(to, from, offset, bytes);
}
VELLUM_PRELOAD ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset,
                                       size_t bytes, unsigned flags) {
  if (!is_live(from) && !is_live(to))
    return VELLUM_REAL(copy_file_range)(from, from_offset, to, to_offset, bytes, flags);
  return vellum::preload::copy(from, from_offset, to, to_offset, bytes);
}
VELLUM_PRELOAD ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset,
                              size_t bytes, unsigned flags) {
  if (!is_live(from) && !is_live(to))
    return VELLUM_REAL(splice)(from, from_offset, to, to_offset, bytes, flags);
  errno = EINVAL;  // the kernel's error for files that cannot be spliced
  return -1;
}

namespace vellum::preload {
namespace {

// FS_IOC_RESVSP and similar requests, which the kernel's headers do not export: linux/falloc.h.
bool allocates(unsigned long request) {
  const auto number = _IOC_NR(request);
  return _IOC_TYPE(request) == 'X' && ((number >= 40 && number <= 43) || number == 57);
}

// Requests that bypass a live file's memory: clones share the content on disk, old forms of
// fallocate(2) change it, and extent maps report it.
bool bypasses(int fd, unsigned long request, void* argument) {
  switch (request) {
    case FICLONE:
      return is_live(fd) || is_live(static_cast<int>(reinterpret_cast<long>(argument)));
    case FICLONERANGE: {
      file_clone_range range;
      if (!Files::instance().any_live()) return false;
      const bool there = region::copy_guarded(&range, argument, sizeof range) == sizeof range;
      return is_live(fd) || (there && is_live(static_cast<int>(range.src_fd)));
    }
    case FIDEDUPERANGE:
    case FS_IOC_FIEMAP:
      return is_live(fd);
    default:
      return allocates(request) && is_live(fd);
  }
}

}  // namespace
}  // namespace vellum::preload

VELLUM_PRELOAD int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (vellum::preload::bypasses(fd, request, argument)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return VELLUM_REAL(ioctl)(fd, request, argument);
}
