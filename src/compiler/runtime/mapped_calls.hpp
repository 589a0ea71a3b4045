// compiler/runtime/mapped_calls.hpp: read(2) and write(2) of atomically mapped files. They use the
// mapped memory: otherwise they would miss stores that are not yet in the file.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "interfaces/mapped_io/descriptor_io.hpp"

namespace vellum::msync {

using mapped_io::given_offset;
using mapped_io::kOwnOffset;

// Whether VELLUM_ATOMIC_FILES is set. Read once: a program without atomic files should not be
// affected by this library.
bool any_atomic_files();
// Whether the file behind a descriptor is mapped atomically.
bool is_mapped(int fd);

// REQUIRES: is_mapped(). `at`: kOwnOffset, or a given_offset(). `flags`: of preadv2(2).
// interfaces/mapped_io/durable.hpp decides whether a write is a commit.
ssize_t mapped_read(int fd, const iovec* pieces, std::size_t count, off_t at, int flags = 0);
ssize_t mapped_write(int fd, const iovec* pieces, std::size_t count, off_t at, int flags = 0);

inline ssize_t mapped_read(int fd, void* to, std::size_t bytes, off_t at) {
  const iovec piece = mapped_io::one_piece(to, bytes);
  return mapped_read(fd, &piece, 1, at);
}
inline ssize_t mapped_write(int fd, const void* from, std::size_t bytes, off_t at) {
  const iovec piece = mapped_io::one_piece(from, bytes);
  return mapped_write(fd, &piece, 1, at);
}

}  // namespace vellum::msync
