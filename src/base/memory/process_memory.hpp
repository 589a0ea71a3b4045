// base/memory/process_memory.hpp: the memory limits of this process and of its regions.
#pragma once

#include <cstdint>

namespace vellum::base {

// The minimum of the machine's memory and the limits of the process's cgroup and its ancestors
// (sysinfo(2); cgroups(7), v1 and v2). Determined once.
std::uint64_t memory_of_process();

// The part of it for all regions together: three quarters, less 64 MiB for the library's other
// needs, but at least half. VELLUM_MEMORY_LIMIT=BYTES overrides it. Errc::invalid_argument: its
// value is no number of bytes.
std::uint64_t memory_for_regions();

}  // namespace vellum::base
