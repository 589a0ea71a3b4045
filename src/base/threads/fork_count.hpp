// base/threads/fork_count.hpp: detects whether this process still is the creator of an object.
#pragma once

#include <cstdint>

namespace vellum::base {

// A number that in a child of fork(2), and of clone(2) without shared memory, differs from that of
// all its ancestors. Unlike getpid(2) it makes no system call and never repeats: in its own PID
// namespace a child may have its parent's process id. REQUIRES, to compare: called once before the
// fork.
std::uint32_t fork_count() noexcept;

}  // namespace vellum::base
