// base/clock.hpp: the time of day for records, durations for reports, and pauses.
#pragma once

#include <time.h>

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

// To within a few milliseconds, but at the cost of a read. Async-signal-safe.
inline std::int64_t coarse_monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace vellum::base
