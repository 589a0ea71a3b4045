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

// Times in records are nanoseconds since 1970, UTC.
inline std::chrono::system_clock::time_point time_point_of(std::int64_t time_ns) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(time_ns)));
}

inline std::int64_t nanoseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Also for a file's times: stat(2).
inline std::int64_t nanoseconds_of(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// The clock may jump. Do not use it for ordering.
inline std::int64_t wall_clock_ns() { return nanoseconds_of(std::chrono::system_clock::now()); }

// Exact to a few milliseconds, and as cheap as a memory read. Async-signal-safe.
inline std::int64_t coarse_monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return nanoseconds_of(now);
}

}  // namespace vellum::base
