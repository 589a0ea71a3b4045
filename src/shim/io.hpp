// shim/io.hpp: reading and writing a live file by a descriptor.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "shim/live_file.hpp"

namespace vellum::shim {

inline constexpr off_t kOwnOffset = -1;  // the descriptor's, which moves on

// What of preadv2(2)'s flags means something here, and what changes nothing: memory does not wait.
inline constexpr int kNoAppend = 0x20;   // RWF_NOAPPEND, Linux 6.9
inline constexpr int kDontCache = 0x80;  // RWF_DONTCACHE, Linux 6.14
inline constexpr int kKnownFlags =
    RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | kNoAppend | kDontCache;

// The count, or -1 and errno, as readv(2) and writev(2). A write by a descriptor that was opened
// with O_SYNC or O_DSYNC, or with RWF_SYNC or RWF_DSYNC, is a commit.
ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags = 0);
ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags = 0);

}  // namespace vellum::shim
