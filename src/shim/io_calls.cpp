// read(2), write(2) and their like: through the memory of files that are live.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "shim/files.hpp"
#include "shim/io.hpp"
#include "shim/real.hpp"

namespace vellum::shim {
namespace {

// The kernel takes a descriptor's offset and moves it as one step; so does who holds this.
std::mutex offset_mutex;

// Runs transfer(piece, offset) for each piece, as far as they go.
template <typename Transfer>
ssize_t for_pieces(const iovec* pieces, std::size_t count, off_t at, const Transfer& transfer) {
  ssize_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ssize_t done = transfer(pieces[i], static_cast<std::uint64_t>(at + total));
    if (done < 0) return total > 0 ? total : -1;
    total += done;
    if (static_cast<std::size_t>(done) < pieces[i].iov_len) break;
  }
  return total;
}

ssize_t bad(int error) {
  errno = error;
  return -1;
}

template <typename AtOffset>
ssize_t at_own_offset(int fd, const AtOffset& body) {
  const std::lock_guard lock(offset_mutex);
  const off_t at = VELLUM_REAL(lseek)(fd, 0, SEEK_CUR);
  if (at < 0) return -1;
  const ssize_t done = body(at);
  if (done > 0) VELLUM_REAL(lseek)(fd, at + done, SEEK_SET);
  return done;
}

}  // namespace

ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at) {
  if (!Files::instance().reads(fd)) return bad(EBADF);
  const auto body = [&](off_t from) {
    return for_pieces(pieces, count, from, [&](const iovec& piece, std::uint64_t offset) {
      return live.read_at(piece.iov_base, piece.iov_len, offset);
    });
  };
  return at == kOwnOffset ? at_own_offset(fd, body) : at < 0 ? bad(EINVAL) : body(at);
}

ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at) {
  if (!Files::instance().writes(fd)) return bad(EBADF);
  const bool append = at == kOwnOffset && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
  if (append) VELLUM_REAL(lseek)(fd, static_cast<off_t>(live.size_bytes()), SEEK_SET);
  const auto body = [&](off_t to) {
    return for_pieces(pieces, count, to, [&](const iovec& piece, std::uint64_t offset) {
      return live.write_at(piece.iov_base, piece.iov_len, offset, append);
    });
  };
  const ssize_t done = at == kOwnOffset ? at_own_offset(fd, body) : at < 0 ? bad(EINVAL) : body(at);
  if (done <= 0 || !Files::instance().synchronous(fd)) return done;
  const int error = live.flush();
  return error == 0 ? done : bad(error);
}

}  // namespace vellum::shim

using vellum::shim::Files;
using vellum::shim::kOwnOffset;
using vellum::shim::read_live;
using vellum::shim::write_live;

namespace {

ssize_t read_one(vellum::shim::LiveFile& live, int fd, void* to, size_t bytes, off_t at) {
  const iovec piece{to, bytes};
  return read_live(live, fd, &piece, 1, at);
}
ssize_t write_one(vellum::shim::LiveFile& live, int fd, const void* from, size_t bytes, off_t at) {
  const iovec piece{const_cast<void*>(from), bytes};
  return write_live(live, fd, &piece, 1, at);
}

ssize_t explained(int fd, ssize_t result) {
  if (result < 0) Files::instance().explain_failure(fd);
  return result;
}

}  // namespace

#define VELLUM_LIVE(call, ...) \
  if (const auto live = Files::instance().live(fd)) return call(*live, fd, __VA_ARGS__)

VELLUM_SHIM ssize_t read(int fd, void* to, size_t bytes) {
  VELLUM_LIVE(read_one, to, bytes, kOwnOffset);
  return VELLUM_REAL(read)(fd, to, bytes);
}
VELLUM_SHIM ssize_t write(int fd, const void* from, size_t bytes) {
  VELLUM_LIVE(write_one, from, bytes, kOwnOffset);
  return explained(fd, VELLUM_REAL(write)(fd, from, bytes));
}
VELLUM_SHIM ssize_t readv(int fd, const iovec* pieces, int count) {
  VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), kOwnOffset);
  return VELLUM_REAL(readv)(fd, pieces, count);
}
VELLUM_SHIM ssize_t writev(int fd, const iovec* pieces, int count) {
  VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), kOwnOffset);
  return explained(fd, VELLUM_REAL(writev)(fd, pieces, count));
}

#define VELLUM_AT_OFFSET(suffix)                                                          \
  VELLUM_SHIM ssize_t pread##suffix(int fd, void* to, size_t bytes, off_t at) {           \
    VELLUM_LIVE(read_one, to, bytes, at < 0 ? -2 : at);                                   \
    return VELLUM_REAL(pread##suffix)(fd, to, bytes, at);                                 \
  }                                                                                       \
  VELLUM_SHIM ssize_t pwrite##suffix(int fd, const void* from, size_t bytes, off_t at) {  \
    VELLUM_LIVE(write_one, from, bytes, at < 0 ? -2 : at);                                \
    return explained(fd, VELLUM_REAL(pwrite##suffix)(fd, from, bytes, at));               \
  }                                                                                       \
  VELLUM_SHIM ssize_t preadv##suffix(int fd, const iovec* pieces, int count, off_t at) {  \
    VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), at < 0 ? -2 : at);         \
    return VELLUM_REAL(preadv##suffix)(fd, pieces, count, at);                            \
  }                                                                                       \
  VELLUM_SHIM ssize_t pwritev##suffix(int fd, const iovec* pieces, int count, off_t at) { \
    VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), at < 0 ? -2 : at);        \
    return VELLUM_REAL(pwritev##suffix)(fd, pieces, count, at);                           \
  }
VELLUM_AT_OFFSET()
VELLUM_AT_OFFSET(64)

// With flags: -1 is the descriptor's own offset; RWF_DSYNC and RWF_SYNC flush.
#define VELLUM_WITH_FLAGS(suffix)                                                         \
  VELLUM_SHIM ssize_t preadv##suffix(int fd, const iovec* pieces, int count, off_t at,    \
                                     int flags) {                                         \
    VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), at);                       \
    return VELLUM_REAL(preadv##suffix)(fd, pieces, count, at, flags);                     \
  }                                                                                       \
  VELLUM_SHIM ssize_t pwritev##suffix(int fd, const iovec* pieces, int count, off_t at,   \
                                      int flags) {                                        \
    if (const auto live = Files::instance().live(fd)) {                                   \
      const ssize_t done = write_live(*live, fd, pieces, static_cast<size_t>(count), at); \
      const bool flush = done > 0 && (flags & (RWF_DSYNC | RWF_SYNC)) != 0;               \
      return flush && live->flush() != 0 ? -1 : done;                                     \
    }                                                                                     \
    return VELLUM_REAL(pwritev##suffix)(fd, pieces, count, at, flags);                    \
  }
VELLUM_WITH_FLAGS(v2)
VELLUM_WITH_FLAGS(64v2)

// NOLINTBEGIN(bugprone-reserved-identifier): what _FORTIFY_SOURCE makes of the calls.
extern "C" void __chk_fail(void) __attribute__((noreturn));
VELLUM_SHIM ssize_t __read_chk(int fd, void* to, size_t bytes, size_t room) {
  if (bytes > room) __chk_fail();
  return read(fd, to, bytes);
}
VELLUM_SHIM ssize_t __pread_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  if (bytes > room) __chk_fail();
  return pread(fd, to, bytes, at);
}
VELLUM_SHIM ssize_t __pread64_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  if (bytes > room) __chk_fail();
  return pread(fd, to, bytes, at);
}
// NOLINTEND(bugprone-reserved-identifier)
