// run/run/exec_environment.hpp: keeps the library loaded in the child programs of a program. A
// program may start another with a different environment (`env -i`, execve(2) with a new array,
// posix_spawn(3)). The variables of `vellum run` are copied at the start. Those that are missing
// later are added to the next program's environment. Nothing here allocates: a child of vfork(2)
// calls it.
#pragma once

#include <alloca.h>

#include <cstddef>

namespace vellum::preload {

// REQUIRES: the environment is unchanged.
void keep_environment() noexcept;
// Whether keep_environment() found the variables: this process belongs to a run, and has begun.
bool environment_is_kept() noexcept;

struct MissingVariables {
  std::size_t words = 0;          // of the complete array; 0: nothing is missing
  std::size_t preload_bytes = 0;  // of LD_PRELOAD's line, if that has to change
};
MissingVariables missing_from(char* const* environment) noexcept;
// `words` and `preload` have the sizes that missing_from() returned.
void add_missing(char* const* environment, char** words, char* preload) noexcept;

// For programs that the C library starts with the process's environment, as system(3) does. Takes
// putenv(3)'s locks and memory.
void restore_environment() noexcept;

// Calls `start` with the environment for the next program.
template <typename Start>
int start_with_ours(char* const* environment, const Start& start) noexcept {
  const MissingVariables missing = missing_from(environment);
  if (missing.words == 0) return start(environment);
  auto** const words = static_cast<char**>(alloca(missing.words * sizeof(char*)));
  auto* const preload = static_cast<char*>(alloca(missing.preload_bytes + 1));
  add_missing(environment, words, preload);
  return start(static_cast<char* const*>(words));
}

}  // namespace vellum::preload
