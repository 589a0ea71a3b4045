// Functions that write bytes to a descriptor.
#include <sys/uio.h>
#include <unistd.h>

#include "compiler/runtime/mapped_calls.hpp"
#include "compiler/runtime/marked.hpp"

using vellum::msync::given_offset;
using vellum::msync::is_mapped;
using vellum::msync::kOwnOffset;
using vellum::msync::mapped_write;

VELLUM_WRAP(ssize_t, write)(int fd, const void* from, size_t bytes) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, kOwnOffset) : write(fd, from, bytes);
}
VELLUM_WRAP(ssize_t, pwrite)(int fd, const void* from, size_t bytes, off_t at) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, given_offset(at))
                       : pwrite(fd, from, bytes, at);
}
VELLUM_WRAP(ssize_t, pwrite64)(int fd, const void* from, size_t bytes, off64_t at) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, given_offset(at))
                       : pwrite64(fd, from, bytes, at);
}
VELLUM_WRAP(ssize_t, writev)(int fd, const iovec* pieces, int count) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), kOwnOffset)
                       : writev(fd, pieces, count);
}
VELLUM_WRAP(ssize_t, pwritev)(int fd, const iovec* pieces, int count, off_t at) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), given_offset(at))
                       : pwritev(fd, pieces, count, at);
}
VELLUM_WRAP(ssize_t, pwritev64)(int fd, const iovec* pieces, int count, off64_t at) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), given_offset(at))
                       : pwritev64(fd, pieces, count, at);
}

// The calls with flags: -1 is the descriptor's own offset.
VELLUM_WRAP(ssize_t, pwritev2)(int fd, const iovec* pieces, int count, off_t at, int flags) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), at, flags)
                       : pwritev2(fd, pieces, count, at, flags);
}
VELLUM_WRAP(ssize_t, pwritev64v2)(int fd, const iovec* pieces, int count, off64_t at, int flags) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), at, flags)
                       : pwritev64v2(fd, pieces, count, at, flags);
}
