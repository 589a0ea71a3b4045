// shim/descriptor_limit.hpp: a live file has descriptors of Vellum's own, which are not to take the
// program's away: they get high numbers, and where the soft limit of a process has no more of them
// (getrlimit(2), RLIMIT_NOFILE), it becomes the hard one.
#pragma once

#include <string>

namespace vellum::shim {

// A descriptor that has just become Vellum's own, under the number that it is to have: the first
// 512, or half of the soft limit, are the program's. -1 and errno: there is none left, and the
// descriptor is closed. Allocates nothing.
int moved_away(int fd) noexcept;

// A file could not become live, by `error`, a number of errno: EMFILE where descriptors are what
// lacks, which the store tells as a lack of memory; else the same.
int cause_of(int error) noexcept;

// The limit behind EMFILE or ENOMEM, in one line. Empty: it is another error.
std::string limit_behind(int error);

}  // namespace vellum::shim
