// base/fork_count.hpp: whether this process is still the one that made an object.
#pragma once

#include <cstdint>

namespace vellum::base {

// A number that is another in a child of fork(2), and of clone(2) without its parent's memory, than
// in each process before it. Unlike getpid(2) it is no system call, and does not come again: in a
// PID namespace of its own a child may have its parent's number. REQUIRES, for who compares: called
// once before the fork.
std::uint32_t fork_count() noexcept;

}  // namespace vellum::base
