// run/run/watch.hpp: the files that `vellum run` was given, without any allocation. An allocator
// calls open(2), mmap(2) and madvise(2) while it holds its own locks, and before its first
// allocation has returned (jemalloc): an allocation by this library would deadlock there. This
// class therefore decides whether a call concerns a watched file, and Files allocates memory only
// for a call that does.
#pragma once

#include <cstddef>
#include <string_view>

namespace vellum::preload {

class WatchedFiles {
 public:
  // The process's instance. The first call creates it, before the program can change its
  // environment, and copies the environment's variables.
  static const WatchedFiles& instance() noexcept;
  // Whether there is anything to do at all.
  bool active() const noexcept { return paths_ != nullptr; }
  // Whether the program reads copies of an old version.
  bool has_copies() const noexcept { return copies_ != nullptr; }

  // Tests the last part of a path.
  bool may_name(const char* path) const noexcept;
  // The same, also for companion files of a watched database.
  bool may_name_companion(const char* path) const noexcept;
  // Tests a whole path, as the kernel resolves it.
  bool watches(const char* path) const noexcept;
  // Tests the path of an open file.
  bool watches(int fd) const noexcept;

  // A variable's value at the start; null if it was not set, or is not one of config.hpp's.
  const char* variable(std::string_view name) const noexcept;

 private:
  WatchedFiles() noexcept;

  static constexpr std::size_t kVariables = 6;
  const char* values_[kVariables] = {};
  // The same lines with a zero for each newline, and an empty line at the end.
  const char *paths_ = nullptr, *copies_ = nullptr;
};

}  // namespace vellum::preload
