// base/threads/processors.hpp: how many processors the machine has.
#pragma once

#include <algorithm>
#include <thread>

namespace vellum::base {

// At least 1, also where the number is not known.
inline unsigned processors() noexcept { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace vellum::base
