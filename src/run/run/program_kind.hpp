// run/run/program_kind.hpp: whether the library can intercept the C library of a program's file.
//
// Nothing here allocates: a child of vfork(2) calls it, too.
#pragma once

#include <climits>
#include <cstdint>

namespace vellum::preload {

enum class ProgramKind : std::uint32_t {
  preloadable = 1,
  statically_linked,
  other_machine,  // 32-bit, for example
  other_user,     // set-user-ID: the dynamic linker ignores this user's libraries
  go,             // the library is loaded, but Go's runtime bypasses it
  unknown,        // the file is missing or cannot be read: execve(2) reports the error
};

// For a script its interpreter decides: `path` becomes the file that was checked.
ProgramKind kind_of_program(char (&path)[PATH_MAX]) noexcept;
// The same for an open program; `path` becomes the interpreter of a script.
ProgramKind kind_of_program(int fd, char (&path)[PATH_MAX]) noexcept;

// The text after the program's name in a message; empty for preloadable and unknown.
const char* what_it_means(ProgramKind kind) noexcept;

}  // namespace vellum::preload
