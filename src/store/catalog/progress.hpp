// store/catalog/progress.hpp: the progress of a long operation on a store.
#pragma once

#include <cstdint>
#include <functional>

namespace vellum::store {

struct Progress {
  std::uint64_t done = 0, total = 0;
  const char* unit = "";
};
using ProgressFn = std::function<void(const Progress&)>;

}  // namespace vellum::store
