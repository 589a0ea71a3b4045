// shim/exec_environment.hpp: the library goes along when a program starts another one with an
// environment of its own making (`env -i`, execve(2) with a new array, posix_spawn(3)).
//
// What `vellum run` has put into the environment is copied at the beginning. What is missing of it
// later is added to what the next program is given. Nothing here allocates: a child of vfork(2)
// calls it.
#pragma once

#include <alloca.h>

#include <cstddef>

namespace vellum::shim {

// REQUIRES: nobody has changed the environment yet.
void keep_environment() noexcept;
// Whether it was there: this process is one of a run, and has begun.
bool environment_is_kept() noexcept;

struct MissingVariables {
  std::size_t words = 0;          // of the array that has them all; 0: nothing is missing
  std::size_t preload_bytes = 0;  // of LD_PRELOAD's line, when that has to be another
};
MissingVariables missing_from(char* const* environment) noexcept;
// `words` and `preload` have the room that missing_from() said.
void add_missing(char* const* environment, char** words, char* preload) noexcept;

// For what the C library starts by itself with the process's environment, as system(3) does. Takes
// putenv(3)'s locks and memory.
void restore_environment() noexcept;

// Calls it with the environment that the next program gets.
template <typename Start>
int start_with_ours(char* const* environment, const Start& start) noexcept {
  const MissingVariables missing = missing_from(environment);
  if (missing.words == 0) return start(environment);
  auto** const words = static_cast<char**>(alloca(missing.words * sizeof(char*)));
  auto* const preload = static_cast<char*>(alloca(missing.preload_bytes + 1));
  add_missing(environment, words, preload);
  return start(static_cast<char* const*>(words));
}

}  // namespace vellum::shim
