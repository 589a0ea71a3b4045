// interfaces/mapped_io/durable.hpp: the calls that make a file's content durable, for
// libvellum-run.so, libvellum-cards.so and the mount. Each of these commits before it returns:
//
//   fsync(2), fdatasync(2), aio_fsync(3)        of the file
//   msync(2), MS_SYNC                           of a mapping of the file
//   sync(2), syncfs(2)                          of all files of the process
//   sync_file_range(2)                          that waits (SYNC_FILE_RANGE_WAIT_AFTER)
//   write(2) and related calls                  by a descriptor with O_SYNC or O_DSYNC
//   pwritev2(2)                                 with RWF_SYNC or RWF_DSYNC
//
// msync(2) without MS_SYNC starts a commit at most. close(2) promises nothing. The kernel ignores
// O_SYNC and O_DSYNC in fcntl(2), F_SETFL. For `vellum mount --writable` the kernel converts all of
// these into a flush request, or reports them with the write; syncfs(2) and sync(2) do not reach
// FUSE.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>

namespace vellum::mapped_io {

// By the flags of open(2), or F_GETFL.
inline bool descriptor_is_synchronous(int open_flags) noexcept {
  return (open_flags & (O_SYNC | O_DSYNC)) != 0;
}

// By the flags of pwritev2(2).
inline bool write_is_synchronous(int call_flags) noexcept {
  return (call_flags & (RWF_SYNC | RWF_DSYNC)) != 0;
}

inline bool range_waits(unsigned flags) noexcept {
  return (flags & SYNC_FILE_RANGE_WAIT_AFTER) != 0;
}

// sync_file_range(2): 0, or the errno value that the kernel gives.
inline int refuse_sync_range(std::int64_t offset_bytes, std::int64_t length_bytes,
                             unsigned flags) noexcept {
  constexpr unsigned kKnown =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  const bool fits =
      offset_bytes >= 0 && length_bytes >= 0 && length_bytes <= INT64_MAX - offset_bytes;
  return (flags & ~kKnown) == 0 && fits ? 0 : EINVAL;
}

}  // namespace vellum::mapped_io
