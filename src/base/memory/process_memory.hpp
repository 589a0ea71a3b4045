// base/memory/process_memory.hpp: the memory limit of this process.
#pragma once

#include <cstdint>

namespace vellum::base {

// The minimum of the machine's memory and the limits of the process's cgroup and its ancestors
// (sysinfo(2); cgroups(7), v1 and v2). Determined once.
std::uint64_t memory_of_process();

}  // namespace vellum::base
