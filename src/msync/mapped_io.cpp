#include "msync/mapped_io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "atomic_file/mapped_files.hpp"
#include "msync/marked.hpp"

namespace vellum::msync {
namespace {

using atomic_file::MappedFiles;

// Runs transfer(piece, offset) for each piece, until one falls short, and advances the descriptor's
// offset if that is in use.
template <typename Transfer>
ssize_t for_pieces(int fd, const iovec* pieces, std::size_t count, off_t offset_bytes,
                   const Transfer& transfer) {
  const bool own = offset_bytes < 0;
  off_t at = own ? lseek(fd, 0, SEEK_CUR) : offset_bytes;
  if (at < 0) return -1;
  ssize_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ssize_t done = transfer(pieces[i], at);
    if (done < 0 && total == 0) return -1;
    if (done < 0) break;
    total += done;
    at += done;
    if (static_cast<std::size_t>(done) < pieces[i].iov_len) break;
  }
  if (own && total > 0) lseek(fd, at, SEEK_SET);
  return total;
}

}  // namespace

bool any_atomic_files() {
  static const bool any = [] {
    const char* patterns = std::getenv("VELLUM_ATOMIC_FILES");
    return patterns != nullptr && *patterns != '\0';
  }();
  return any;
}

bool is_mapped(int fd) { return any_atomic_files() && MappedFiles::instance().mapped(fd); }

ssize_t mapped_read(int fd, const iovec* pieces, std::size_t count, off_t offset_bytes) {
  return for_pieces(fd, pieces, count, offset_bytes, [&](const iovec& piece, off_t at) {
    return MappedFiles::instance().read_at(fd, piece.iov_base, piece.iov_len, at);
  });
}

ssize_t mapped_write(int fd, const iovec* pieces, std::size_t count, off_t offset_bytes) {
  const int flags = fcntl(fd, F_GETFL);
  if ((flags & O_ACCMODE) == O_RDONLY) {
    errno = EBADF;
    return -1;
  }
  const bool append = offset_bytes < 0 && (flags & O_APPEND) != 0;
  if (append) lseek(fd, 0, SEEK_END);
  return for_pieces(fd, pieces, count, offset_bytes, [&](const iovec& piece, off_t at) {
    return MappedFiles::instance().write_at(fd, piece.iov_base, piece.iov_len, append ? -1 : at);
  });
}

}  // namespace vellum::msync

using vellum::msync::is_mapped;
using vellum::msync::mapped_write;

VELLUM_WRAP(ssize_t, write)(int fd, const void* from, size_t bytes) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, -1) : write(fd, from, bytes);
}
VELLUM_WRAP(ssize_t, pwrite)(int fd, const void* from, size_t bytes, off_t at) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, at) : pwrite(fd, from, bytes, at);
}
VELLUM_WRAP(ssize_t, pwrite64)(int fd, const void* from, size_t bytes, off64_t at) {
  return is_mapped(fd) ? mapped_write(fd, from, bytes, at) : pwrite64(fd, from, bytes, at);
}
VELLUM_WRAP(ssize_t, writev)(int fd, const iovec* pieces, int count) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), -1)
                       : writev(fd, pieces, count);
}
VELLUM_WRAP(ssize_t, pwritev)(int fd, const iovec* pieces, int count, off_t at) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), at)
                       : pwritev(fd, pieces, count, at);
}
VELLUM_WRAP(ssize_t, pwritev64)(int fd, const iovec* pieces, int count, off64_t at) {
  return is_mapped(fd) ? mapped_write(fd, pieces, static_cast<size_t>(count), at)
                       : pwritev64(fd, pieces, count, at);
}
