// bench/lib/child.hpp: runs a measurement in a separate process without leftovers of the writing
// process: no mapping, no cache of records, no open store.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace bench {

// Returns the result of `body`, which must be plain data. Throws when the child fails.
template <typename Body>
auto in_child(Body body) {
  using Result = decltype(body());
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no child process");
  if (child == 0) {
    int status = 1;
    try {
      const Result result = body();
      status = write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1;
    } catch (const std::exception& e) {
      fmt::print(stderr, "in a child process: {}\n", e.what());
    }
    _exit(status);
  }
  close(ends[1]);
  Result result{};
  const bool got = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!got || status != 0) throw std::runtime_error("the child process failed");
  return result;
}

}  // namespace bench
