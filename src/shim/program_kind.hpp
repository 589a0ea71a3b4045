// shim/program_kind.hpp: whether the library can stand in front of a program's C library, by what
// its file says.
//
// Nothing here allocates: a child of vfork(2) asks, too.
#pragma once

#include <climits>
#include <cstdint>

namespace vellum::shim {

enum class ProgramKind : std::uint32_t {
  preloadable = 1,
  statically_linked,
  other_machine,  // 32-bit, for one
  other_user,     // set-user-ID: the dynamic linker takes nothing from this user
  go,             // the dynamic linker takes the library, and Go's runtime goes around it
  unknown,        // no such file, or none that may be read: execve(2) says more
};

// A script is what its interpreter is: `path` becomes the file that decides.
ProgramKind kind_of_program(char (&path)[PATH_MAX]) noexcept;
// Of a program that is open; `path` becomes the interpreter of a script.
ProgramKind kind_of_program(int fd, char (&path)[PATH_MAX]) noexcept;

// What follows the program's name in a message; of the kinds that are not preloadable, or unknown.
const char* what_it_means(ProgramKind kind) noexcept;

}  // namespace vellum::shim
