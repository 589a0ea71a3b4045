// store/catalog/lock/lock_bytes.hpp: the bytes of `vellum.store` that serve as locks, far behind
// the end of the file, and waiting for a lock that others hold for a short time.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <thread>

namespace vellum::store {

// Shared: NamesShared. Exclusive: NamesExclusive.
inline constexpr std::uint64_t kNamesByte = std::uint64_t{1} << 40;
// Exclusive: a NamesExclusive waits for kNamesByte; new NamesShared wait for it.
inline constexpr std::uint64_t kTurnByte = kNamesByte + 1;
// Shared: a version that is open and could not be pinned. Exclusive: gc reads the names.
inline constexpr std::uint64_t kUnpinnedByte = kNamesByte + 2;
// Shared: a version that was opened while packs of the store were remote. Exclusive: gc reads the
// names of a store without remote packs.
inline constexpr std::uint64_t kRemoteReaderByte = kNamesByte + 3;
// Exclusive: a name is being created or removed.
inline constexpr std::uint64_t kFirstNameByte = std::uint64_t{1} << 41;
inline constexpr std::uint64_t kNameBytes = std::uint64_t{1} << 61;

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
