// base/memory/room_to_grow.hpp: address space where it is limited, and how much of it memory
// that may grow reserves by default.
#pragma once

#include <cstdint>

namespace vellum::base {

// What the limits of this process leave of address space (RLIMIT_AS, and RLIMIT_DATA, which counts
// what is writable, touched or not). UINT64_MAX: there is none.
std::uint64_t space_left();

// The larger of 4 times the size and 64 GiB. Where the process is limited, an eighth of
// what is left: a region takes its room twice, and the program needs some, too.
// Never more than a file may have (RLIMIT_FSIZE), and never less than the size.
std::uint64_t room_to_grow(std::uint64_t size_bytes);

}  // namespace vellum::base
