// shim/watch.hpp: which files `vellum run` was given, without allocating anything.
//
// An allocator calls open(2), mmap(2), madvise(2) while it holds its own locks, and before its
// first allocation is done (jemalloc): what this library allocated there would wait for itself. So
// whether a call concerns a watched file is found out with what is here, and Files makes its own
// memory only behind a call that does.
#pragma once

#include <cstddef>
#include <string_view>

namespace vellum::shim {

class Watch {
 public:
  // The process's own: made by the first call, before the program can change its environment, whose
  // variables are copied.
  static const Watch& instance() noexcept;
  // Whether there is anything to do at all.
  bool active() const noexcept { return paths_ != nullptr; }
  // Whether the program is to read copies of an old version.
  bool has_copies() const noexcept { return copies_ != nullptr; }

  // By the last part of a path.
  bool may_name(const char* path) const noexcept;
  // The same of the file, or of what belongs beside it by databases' custom.
  bool may_name_beside(const char* path) const noexcept;
  // A whole path, as the kernel has it.
  bool watches(const char* path) const noexcept;
  // What is open there.
  bool watches(int fd) const noexcept;

  // A variable as it was at the beginning; null: it was not set, or is not one of config.hpp's.
  const char* variable(std::string_view name) const noexcept;

 private:
  Watch() noexcept;

  static constexpr std::size_t kVariables = 6;
  const char* values_[kVariables] = {};
  // The same lines with a zero for each newline, and an empty one at the end.
  const char *paths_ = nullptr, *copies_ = nullptr;
};

}  // namespace vellum::shim
