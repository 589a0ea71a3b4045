#include "base/files/unique_name.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace vellum::base {

std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return std::to_string(::getpid()) + "." + std::to_string(now) + "." +
         std::to_string(counter.fetch_add(1));
}

}  // namespace vellum::base
