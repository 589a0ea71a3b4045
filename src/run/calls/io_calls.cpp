// read(2), write(2) and similar calls, through the memory of live files.
#include <sys/uio.h>
#include <unistd.h>

#include "interfaces/mapped_io/descriptor_io.hpp"
#include "run/files/files.hpp"
#include "run/process/real.hpp"

using vellum::mapped_io::given_offset;
using vellum::mapped_io::kOwnOffset;
using vellum::mapped_io::one_piece;
using vellum::preload::Files;
using vellum::preload::read_live;
using vellum::preload::write_live;

namespace {

ssize_t read_one(vellum::preload::LiveFile& live, int fd, void* to, size_t bytes, off_t at) {
  const iovec piece = one_piece(to, bytes);
  return read_live(live, fd, &piece, 1, at);
}
ssize_t write_one(vellum::preload::LiveFile& live, int fd, const void* from, size_t bytes,
                  off_t at) {
  const iovec piece = one_piece(from, bytes);
  return write_live(live, fd, &piece, 1, at);
}

ssize_t explained(int fd, ssize_t result) {
  if (result < 0) vellum::preload::explain_failed_write(fd);
  return result;
}

}  // namespace

#define VELLUM_LIVE(call, ...) \
  if (const auto live = Files::instance().live(fd)) return call(*live, fd, __VA_ARGS__)

VELLUM_PRELOAD ssize_t read(int fd, void* to, size_t bytes) {
  VELLUM_LIVE(read_one, to, bytes, kOwnOffset);
  return VELLUM_REAL(read)(fd, to, bytes);
}
VELLUM_PRELOAD ssize_t write(int fd, const void* from, size_t bytes) {
  VELLUM_LIVE(write_one, from, bytes, kOwnOffset);
  return explained(fd, VELLUM_REAL(write)(fd, from, bytes));
}
VELLUM_PRELOAD ssize_t readv(int fd, const iovec* pieces, int count) {
  VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), kOwnOffset);
  return VELLUM_REAL(readv)(fd, pieces, count);
}
VELLUM_PRELOAD ssize_t writev(int fd, const iovec* pieces, int count) {
  VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), kOwnOffset);
  return explained(fd, VELLUM_REAL(writev)(fd, pieces, count));
}

#define VELLUM_AT_OFFSET(suffix)                                                             \
  VELLUM_PRELOAD ssize_t pread##suffix(int fd, void* to, size_t bytes, off_t at) {           \
    VELLUM_LIVE(read_one, to, bytes, given_offset(at));                                      \
    return VELLUM_REAL(pread##suffix)(fd, to, bytes, at);                                    \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t pwrite##suffix(int fd, const void* from, size_t bytes, off_t at) {  \
    VELLUM_LIVE(write_one, from, bytes, given_offset(at));                                   \
    return explained(fd, VELLUM_REAL(pwrite##suffix)(fd, from, bytes, at));                  \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t preadv##suffix(int fd, const iovec* pieces, int count, off_t at) {  \
    VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), given_offset(at));            \
    return VELLUM_REAL(preadv##suffix)(fd, pieces, count, at);                               \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t pwritev##suffix(int fd, const iovec* pieces, int count, off_t at) { \
    VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), given_offset(at));           \
    return explained(fd, VELLUM_REAL(pwritev##suffix)(fd, pieces, count, at));               \
  }
VELLUM_AT_OFFSET()
VELLUM_AT_OFFSET(64)

// The calls with flags: -1 is the descriptor's own offset.
#define VELLUM_WITH_FLAGS(reads, writes)                                                       \
  VELLUM_PRELOAD ssize_t reads(int fd, const iovec* pieces, int count, off_t at, int flags) {  \
    VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), at, flags);                     \
    return VELLUM_REAL(reads)(fd, pieces, count, at, flags);                                   \
  }                                                                                            \
  VELLUM_PRELOAD ssize_t writes(int fd, const iovec* pieces, int count, off_t at, int flags) { \
    VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), at, flags);                    \
    return explained(fd, VELLUM_REAL(writes)(fd, pieces, count, at, flags));                   \
  }
VELLUM_WITH_FLAGS(preadv2, pwritev2)
VELLUM_WITH_FLAGS(preadv64v2, pwritev64v2)

// NOLINTBEGIN(bugprone-reserved-identifier): the names that _FORTIFY_SOURCE calls.
extern "C" void __chk_fail(void) __attribute__((noreturn));
VELLUM_PRELOAD ssize_t __read_chk(int fd, void* to, size_t bytes, size_t room) {
  if (bytes > room) __chk_fail();
  return read(fd, to, bytes);
}
VELLUM_PRELOAD ssize_t __pread_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  if (bytes > room) __chk_fail();
  return pread(fd, to, bytes, at);
}
VELLUM_PRELOAD ssize_t __pread64_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  if (bytes > room) __chk_fail();
  return pread(fd, to, bytes, at);
}
// Other names of these functions in the C library.
VELLUM_PRELOAD ssize_t __read(int fd, void* to, size_t bytes) { return read(fd, to, bytes); }
VELLUM_PRELOAD ssize_t __write(int fd, const void* from, size_t bytes) {
  return write(fd, from, bytes);
}
VELLUM_PRELOAD ssize_t __pread64(int fd, void* to, size_t bytes, off_t at) {
  return pread64(fd, to, bytes, at);
}
VELLUM_PRELOAD ssize_t __pwrite64(int fd, const void* from, size_t bytes, off_t at) {
  return pwrite64(fd, from, bytes, at);
}
// NOLINTEND(bugprone-reserved-identifier)
