// Shared parts of the paging tests: words with a content that their number determines, a wait for
// another thread's work, and a clock that other processes do not affect.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace vellum::test {

// The content of a word, from its number.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  return x ^ (x >> 29);
}

// Waits until `holds()`; false after a minute.
template <typename Holds>
bool comes_true(const Holds& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// The processor time of this process. Other processes and the disk do not change it.
inline std::chrono::nanoseconds processor_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace vellum::test
