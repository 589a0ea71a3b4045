// shim/io.hpp: reading and writing a live file by a descriptor.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>

#include "shim/live_file.hpp"

namespace vellum::shim {

inline constexpr off_t kOwnOffset = -1;  // the descriptor's, which moves on

// The count, or -1 and errno. A write by a descriptor that was opened with O_SYNC or O_DSYNC is a
// commit.
ssize_t read_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at);
ssize_t write_live(LiveFile& live, int fd, const iovec* pieces, std::size_t count, off_t at);

}  // namespace vellum::shim
