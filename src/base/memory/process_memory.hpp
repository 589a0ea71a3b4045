// base/memory/process_memory.hpp: the limits of this process's memory and address space, and the
// kernel's page size.
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

// The address space still available within this process's limits (RLIMIT_AS, and RLIMIT_DATA, which
// counts writable memory, touched or not). UINT64_MAX: no limit.
std::uint64_t space_left();

// The address space that growable memory reserves by default: the larger of 4 times the size and
// 64 GiB. In a limited process, at most an eighth of the available address space: a region needs its
// room twice, and the program needs some. Never more than the largest file (RLIMIT_FSIZE), and never
// less than the size.
std::uint64_t room_to_grow(std::uint64_t size_bytes);

// Throws Errc::unsupported unless the kernel's pages have 4 KiB: dirty pages are detected, mapped and
// dropped in these units, and larger pages would silently include their neighbours. `what` names the
// feature that needs them.
void require_pages_of_4_kib(const char* what);

}  // namespace vellum::base
