// base/memory/room_to_grow.hpp: the address space that growable memory reserves by default.
#pragma once

#include <cstdint>

namespace vellum::base {

// The address space still available within this process's limits (RLIMIT_AS, and RLIMIT_DATA, which
// counts writable memory, touched or not). UINT64_MAX: no limit.
std::uint64_t space_left();

// The larger of 4 times the size and 64 GiB. In a limited process, at most an eighth of the
// available address space: a region needs its room twice, and the program needs some. Never more
// than the largest file (RLIMIT_FSIZE), and never less than the size.
std::uint64_t room_to_grow(std::uint64_t size_bytes);

}  // namespace vellum::base
