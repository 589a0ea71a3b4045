// base/process_memory.hpp: how much memory this process may have.
#pragma once

#include <cstdint>

namespace vellum::base {

// The least of the machine's memory and the limits of the process's cgroup and those above it
// (sysinfo(2); cgroups(7), v1 and v2). Asked for once.
std::uint64_t memory_of_process();

}  // namespace vellum::base
