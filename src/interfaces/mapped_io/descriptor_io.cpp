#include "interfaces/mapped_io/descriptor_io.hpp"

#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <climits>
#include <mutex>

#include "memory/kernel/guarded_copy.hpp"

namespace vellum::mapped_io {
namespace {

// The kernel reads and sets a descriptor's offset, or appends at the end of a file, in one step; so
// does the holder of this lock.
std::mutex offset_mutex;

constexpr std::size_t kMaxPieces = IOV_MAX;

ssize_t bad(int error) {
  errno = error;
  return -1;
}

bool take_piece(const iovec* pieces, std::size_t i, iovec& out) {
  return region::copy_guarded(&out, &pieces[i], sizeof out) == sizeof out;
}

// Checks the arguments before any byte is copied. Returns 0 or errno.
int check(const iovec* pieces, std::size_t count, off_t at, int flags) {
  if ((flags & ~kKnownFlags) != 0) return EOPNOTSUPP;
  if (at < 0 && at != kOwnOffset) return EINVAL;
  if (count > kMaxPieces) return EINVAL;
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
ssize_t for_pieces(const MappedDescriptor& file, const iovec* pieces, std::size_t count, off_t at,
                   const Transfer& transfer) {
  const std::size_t most = file.most_bytes();
  std::size_t total = 0;
  for (std::size_t i = 0; i < count && total < most; ++i) {
    iovec piece;
    if (!take_piece(pieces, i, piece)) return total > 0 ? static_cast<ssize_t>(total) : bad(EFAULT);
    const std::size_t wanted = std::min(piece.iov_len, most - total);
    const ssize_t done = transfer(piece.iov_base, wanted, static_cast<std::uint64_t>(at) + total);
    if (done < 0) return total > 0 ? static_cast<ssize_t>(total) : -1;
    assert(static_cast<std::size_t>(done) <= wanted);
    total += static_cast<std::size_t>(done);
    if (static_cast<std::size_t>(done) < wanted) break;
  }
  return static_cast<ssize_t>(total);
}

template <typename AtOffset>
ssize_t at_own_offset(const MappedDescriptor& file, const AtOffset& body) {
  const std::lock_guard lock(offset_mutex);
  const off_t at = file.seek(0, SEEK_CUR);
  if (at < 0) return -1;
  const ssize_t done = body(at);
  if (done > 0) file.seek(at + done, SEEK_SET);
  return done;
}

// With O_APPEND, Linux ignores the caller's offset and appends (pwrite(2), BUGS). The pieces of one
// call are contiguous.
ssize_t append(MappedDescriptor& file, const iovec* pieces, std::size_t count, bool moves) {
  const std::lock_guard lock(offset_mutex);
  std::uint64_t end = 0;
  const ssize_t done = for_pieces(file, pieces, count, 0,
                                  [&](const void* from, std::size_t bytes, std::uint64_t before) {
                                    std::uint64_t at = 0;
                                    const ssize_t put = file.write_at(from, bytes, at, true);
                                    if (before == 0) end = at;
                                    return put;
                                  });
  if (done > 0 && moves) file.seek(static_cast<off_t>(end) + static_cast<off_t>(done), SEEK_SET);
  return done;
}

bool appends(const MappedDescriptor& file, int flags) {
  if ((flags & kNoAppend) != 0) return false;
  return (flags & RWF_APPEND) != 0 || file.appends();
}

}  // namespace

void lock_offsets() noexcept { offset_mutex.lock(); }
void unlock_offsets() noexcept { offset_mutex.unlock(); }

ssize_t read_pieces(MappedDescriptor& file, const iovec* pieces, std::size_t count, off_t at,
                    int flags) {
  if (!file.reads()) return bad(EBADF);
  if (const int error = check(pieces, count, at, flags)) return bad(error);
  const auto body = [&](off_t from) {
    return for_pieces(file, pieces, count, from,
                      [&](void* to, std::size_t bytes, std::uint64_t offset) {
                        return file.read_at(to, bytes, offset);
                      });
  };
  return at == kOwnOffset ? at_own_offset(file, body) : body(at);
}

ssize_t write_pieces(MappedDescriptor& file, const iovec* pieces, std::size_t count, off_t at,
                     int flags) {
  if (!file.writes()) return bad(EBADF);
  if (const int error = check(pieces, count, at, flags)) return bad(error);
  if (appends(file, flags)) return append(file, pieces, count, at == kOwnOffset);
  const auto body = [&](off_t to) {
    return for_pieces(file, pieces, count, to,
                      [&](const void* from, std::size_t bytes, std::uint64_t offset) {
                        return file.write_at(from, bytes, offset, false);
                      });
  };
  return at == kOwnOffset ? at_own_offset(file, body) : body(at);
}

}  // namespace vellum::mapped_io
