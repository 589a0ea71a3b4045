// base/threads/fork_count.hpp: whether this process is still the one that made an object.
#pragma once

#include <cstdint>

namespace vellum::base {

// A number that differs in a child of fork(2), and of clone(2) without its parent's memory, from
// that of every process before it. Unlike getpid(2) it makes no system call and never repeats: in
// its own PID namespace a child may have its parent's number. REQUIRES, to compare: called once
// before the fork.
std::uint32_t fork_count() noexcept;

}  // namespace vellum::base
