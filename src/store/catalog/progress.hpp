// store/catalog/progress.hpp: how far a long work on a store has come.
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
