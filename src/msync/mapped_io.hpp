// msync/mapped_io.hpp: read(2) and write(2) of atomically mapped files. They use the mapped memory:
// otherwise they would miss stores that are not yet in the file.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

namespace vellum::msync {

// Whether VELLUM_ATOMIC_FILES names anything. Read once: a program without atomic files should not
// notice this library.
bool any_atomic_files();
// Whether the file behind a descriptor is mapped atomically.
bool is_mapped(int fd);

// REQUIRES: is_mapped(). Offset -1: the descriptor's own, which advances.
ssize_t mapped_read(int fd, const iovec* pieces, std::size_t count, off_t offset_bytes);
ssize_t mapped_write(int fd, const iovec* pieces, std::size_t count, off_t offset_bytes);

inline ssize_t mapped_read(int fd, void* to, std::size_t bytes, off_t offset_bytes) {
  const iovec piece{to, bytes};
  return mapped_read(fd, &piece, 1, offset_bytes);
}
inline ssize_t mapped_write(int fd, const void* from, std::size_t bytes, off_t offset_bytes) {
  const iovec piece{const_cast<void*>(from), bytes};
  return mapped_write(fd, &piece, 1, offset_bytes);
}

}  // namespace vellum::msync
