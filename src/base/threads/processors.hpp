// base/threads/processors.hpp: the number of the machine's processors.
#pragma once

#include <algorithm>
#include <thread>

namespace vellum::base {

// At least 1; 1 if the number is unknown.
inline unsigned processors() noexcept { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace vellum::base
