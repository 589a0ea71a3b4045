// preload/io.hpp: reading and writing a live file through a descriptor.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "preload/live_file.hpp"

namespace vellum::preload {

inline constexpr off_t kOwnOffset = -1;  // the descriptor's own, which advances

// The flags of preadv2(2) that are accepted. Some change nothing, as memory does not wait.
inline constexpr int kNoAppend = 0x20;   // RWF_NOAPPEND, Linux 6.9
inline constexpr int kDontCache = 0x80;  // RWF_DONTCACHE, Linux 6.14
inline constexpr int kKnownFlags =
    RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | kNoAppend | kDontCache;

// Return the count, or -1 and errno, as readv(2) and writev(2) do. A write commits if its
// descriptor was opened with O_SYNC or O_DSYNC, or if `flags` has RWF_SYNC or RWF_DSYNC.
ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags = 0);
ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags = 0);

}  // namespace vellum::preload
