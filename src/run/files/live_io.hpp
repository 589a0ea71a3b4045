// run/files/live_io.hpp: reading and writing a live file through a descriptor.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "interfaces/mapped_io/descriptor_io.hpp"
#include "run/live/live_file.hpp"

namespace vellum::preload {

// Return the count, or -1 and errno, as preadv2(2) and pwritev2(2) do; `at` may be
// mapped_io::kOwnOffset. A write commits if its descriptor was opened with O_SYNC or O_DSYNC, or if
// `flags` has RWF_SYNC or RWF_DSYNC.
ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                  int flags = 0);
ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at,
                   int flags = 0);

}  // namespace vellum::preload
