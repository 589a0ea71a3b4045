// store/catalog/lock/patience.hpp: waits for a lock that others hold for a short time.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>

namespace vellum::store {

// Tries repeatedly, at growing intervals. False: timeout.
template <typename TryLock>
bool lock_with_patience(std::chrono::milliseconds patience, const TryLock& try_lock) {
  using namespace std::chrono_literals;
  assert(patience >= 0ms);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (auto pause = 50us; !try_lock();
       pause = std::min<std::chrono::microseconds>(pause * 2, 5ms)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace vellum::store
