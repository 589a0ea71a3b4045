// base/clock.hpp: the time of day for records, and durations for reports.
#pragma once

#include <chrono>
#include <cstdint>

namespace vellum::base {

inline std::uint64_t elapsed_ns(std::chrono::steady_clock::time_point since) {
  const auto d = std::chrono::steady_clock::now() - since;
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
}

// Nanoseconds since 1970, UTC. The clock may jump, so it orders nothing.
inline std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace vellum::base
