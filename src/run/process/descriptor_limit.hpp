// run/process/descriptor_limit.hpp: high descriptor numbers for Vellum's own files. They must not
// use up the program's numbers. If the soft limit of a process (getrlimit(2), RLIMIT_NOFILE) leaves
// none, it is raised to the hard limit.
#pragma once

#include <string>

namespace vellum::preload {

// Moves a new descriptor of Vellum's to a high number and returns that number. The first 512
// numbers, or half of the soft limit, are the program's. -1 and errno: none is left, and `fd` is
// closed. Allocates nothing.
int moved_to_high_number(int fd) noexcept;

// The errno value to report if `error` prevented a file from becoming live: EMFILE if descriptors
// ran out, which the store reports as a lack of memory; otherwise `error`.
int cause_of(int error) noexcept;

// The limit behind EMFILE or ENOMEM, in one line; empty for other errors.
std::string limit_behind(int error);

}  // namespace vellum::preload
