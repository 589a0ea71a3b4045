// base/fork_count.hpp: whether this process is still the one that made an object.
#pragma once

#include <cstdint>

namespace vellum::base {

// How many times fork(2) has been passed through as the child, from the first call on. No system
// call, unlike getpid(2). REQUIRES, for who compares: called once before the fork.
std::uint32_t fork_count() noexcept;

}  // namespace vellum::base
