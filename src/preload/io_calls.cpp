// read(2), write(2) and their like, through the memory of live files.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <mutex>

#include "preload/files.hpp"
#include "preload/io.hpp"
#include "preload/real.hpp"
#include "region/kernel/guarded_copy.hpp"

namespace vellum::preload {
namespace {

// The kernel takes and moves a descriptor's offset, or appends at the end of a file, in one step;
// so does the holder of this lock.
std::mutex offset_mutex;

constexpr std::size_t kMostPieces = IOV_MAX;
constexpr std::size_t kMostBytes = 0x7ffff000;  // in one call: read(2), NOTES

ssize_t bad(int error) {
  errno = error;
  return -1;
}

bool take_piece(const iovec* pieces, std::size_t i, iovec& out) {
  return region::copy_guarded(&out, &pieces[i], sizeof out) == sizeof out;
}

// Checks the arguments before any byte moves. Returns 0 or errno.
int check(const iovec* pieces, std::size_t count) {
  if (count > kMostPieces) return EINVAL;
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    iovec piece;
    if (!take_piece(pieces, i, piece)) return EFAULT;
    if (piece.iov_len > SSIZE_MAX - total) return EINVAL;
    total += piece.iov_len;
  }
  return 0;
}

// Runs transfer(base, length, offset) for each piece, until one falls short.
template <typename Transfer>
ssize_t for_pieces(const iovec* pieces, std::size_t count, off_t at, const Transfer& transfer) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < count && total < kMostBytes; ++i) {
    iovec piece;
    if (!take_piece(pieces, i, piece)) return total > 0 ? static_cast<ssize_t>(total) : bad(EFAULT);
    const std::size_t wanted = std::min(piece.iov_len, kMostBytes - total);
    const ssize_t done = transfer(piece.iov_base, wanted, static_cast<std::uint64_t>(at) + total);
    if (done < 0) return total > 0 ? static_cast<ssize_t>(total) : -1;
    total += static_cast<std::size_t>(done);
    if (static_cast<std::size_t>(done) < wanted) break;
  }
  return static_cast<ssize_t>(total);
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

// With O_APPEND, Linux ignores the caller's offset and appends (pwrite(2), BUGS). The pieces of one
// call stay together.
ssize_t append(LiveFile& live, int fd, const iovec* pieces, std::size_t count, bool moves) {
  const std::lock_guard lock(offset_mutex);
  std::uint64_t end = 0;
  const ssize_t done =
      for_pieces(pieces, count, 0, [&](const void* from, std::size_t bytes, std::uint64_t before) {
        std::uint64_t at = 0;
        const ssize_t put = live.write_at(from, bytes, at, true);
        if (before == 0) end = at;
        return put;
      });
  if (done > 0 && moves)
    VELLUM_REAL(lseek)(fd, static_cast<off_t>(end) + static_cast<off_t>(done), SEEK_SET);
  return done;
}

bool appends(int fd, int flags) {
  if ((flags & kNoAppend) != 0) return false;
  if ((flags & RWF_APPEND) != 0) return true;
  return Files::instance().may_append(fd) && (fcntl(fd, F_GETFL) & O_APPEND) != 0;
}

ssize_t write_pieces(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                     int flags) {
  if (appends(fd, flags)) return append(live, fd, pieces, count, at == kOwnOffset);
  const auto body = [&](off_t to) {
    return for_pieces(pieces, count, to,
                      [&](const void* from, std::size_t bytes, std::uint64_t offset) {
                        return live.write_at(from, bytes, offset, false);
                      });
  };
  return at == kOwnOffset ? at_own_offset(fd, body) : body(at);
}

}  // namespace

ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags) {
  if (!Files::instance().reads(fd)) return bad(EBADF);
  if ((flags & ~kKnownFlags) != 0) return bad(EOPNOTSUPP);
  if (at < 0 && at != kOwnOffset) return bad(EINVAL);
  if (const int error = check(pieces, count)) return bad(error);
  const auto body = [&](off_t from) {
    return for_pieces(pieces, count, from, [&](void* to, std::size_t bytes, std::uint64_t offset) {
      return live.read_at(to, bytes, offset);
    });
  };
  return at == kOwnOffset ? at_own_offset(fd, body) : body(at);
}

ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags) {
  if (!Files::instance().writes(fd)) return bad(EBADF);
  if ((flags & ~kKnownFlags) != 0) return bad(EOPNOTSUPP);
  if (at < 0 && at != kOwnOffset) return bad(EINVAL);
  if (const int error = check(pieces, count)) return bad(error);
  const ssize_t done = write_pieces(live, fd, pieces, count, at, flags);
  const bool flushes = (flags & (RWF_DSYNC | RWF_SYNC)) != 0 || Files::instance().synchronous(fd);
  if (done <= 0 || !flushes) return done;
  const int error = Files::instance().commit_in_order(live, &LiveFile::flush);
  return error == 0 ? done : bad(error);
}

}  // namespace vellum::preload

using vellum::preload::Files;
using vellum::preload::kOwnOffset;
using vellum::preload::read_live;
using vellum::preload::write_live;

namespace {

// read(2) and write(2) truncate counts above the limit of one call.
ssize_t read_one(vellum::preload::LiveFile& live, int fd, void* to, size_t bytes, off_t at) {
  const iovec piece{to, std::min<size_t>(bytes, SSIZE_MAX)};
  return read_live(live, fd, &piece, 1, at);
}
ssize_t write_one(vellum::preload::LiveFile& live, int fd, const void* from, size_t bytes,
                  off_t at) {
  const iovec piece{const_cast<void*>(from), std::min<size_t>(bytes, SSIZE_MAX)};
  return write_live(live, fd, &piece, 1, at);
}

ssize_t explained(int fd, ssize_t result) {
  if (result < 0) Files::instance().explain_failure(fd);
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

// Maps -1, which would mean the descriptor's own offset here, to another invalid one.
inline off_t checked(off_t at) { return at < 0 ? -2 : at; }

#define VELLUM_AT_OFFSET(suffix)                                                             \
  VELLUM_PRELOAD ssize_t pread##suffix(int fd, void* to, size_t bytes, off_t at) {           \
    VELLUM_LIVE(read_one, to, bytes, checked(at));                                           \
    return VELLUM_REAL(pread##suffix)(fd, to, bytes, at);                                    \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t pwrite##suffix(int fd, const void* from, size_t bytes, off_t at) {  \
    VELLUM_LIVE(write_one, from, bytes, checked(at));                                        \
    return explained(fd, VELLUM_REAL(pwrite##suffix)(fd, from, bytes, at));                  \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t preadv##suffix(int fd, const iovec* pieces, int count, off_t at) {  \
    VELLUM_LIVE(read_live, pieces, static_cast<size_t>(count), checked(at));                 \
    return VELLUM_REAL(preadv##suffix)(fd, pieces, count, at);                               \
  }                                                                                          \
  VELLUM_PRELOAD ssize_t pwritev##suffix(int fd, const iovec* pieces, int count, off_t at) { \
    VELLUM_LIVE(write_live, pieces, static_cast<size_t>(count), checked(at));                \
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
