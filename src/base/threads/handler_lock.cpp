// base/threads/handler_lock.cpp: see handler_lock.hpp.
#include "base/threads/handler_lock.hpp"

#include <cassert>

#include "base/threads/futex.hpp"

namespace vellum::base {
namespace {

constexpr std::uint32_t kFree = 0;
constexpr std::uint32_t kHeld = 1;
constexpr std::uint32_t kHeldWithWaiters = 2;

}  // namespace

void HandlerLock::lock() noexcept {
  std::uint32_t seen = kFree;
  if (state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
  // A waiter takes the lock in the state "with waiters": other waiters may exist.
  while (state_.exchange(kHeldWithWaiters, std::memory_order_acquire) != kFree) {
    futex_wait(state_, kHeldWithWaiters);
  }
}

bool HandlerLock::try_lock() noexcept {
  std::uint32_t seen = kFree;
  return state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire);
}

void HandlerLock::unlock() noexcept {
  const std::uint32_t was = state_.exchange(kFree, std::memory_order_release);
  assert(was != kFree);
  if (was == kHeldWithWaiters) futex_wake(state_, 1);
}

}  // namespace vellum::base
