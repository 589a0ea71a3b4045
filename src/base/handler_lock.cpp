// base/handler_lock.cpp: see handler_lock.hpp.
#include "base/handler_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace vellum::base {
namespace {

constexpr std::uint32_t kFree = 0;
constexpr std::uint32_t kHeld = 1;
constexpr std::uint32_t kHeldWithWaiters = 2;

// The result does not matter: a waiter reads the word again however it woke up.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t), "the kernel reads the word itself");
  const int saved_errno = errno;
  ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved_errno;
}

}  // namespace

void HandlerLock::lock() noexcept {
  std::uint32_t seen = kFree;
  if (state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire)) return;
  // A waiter takes the lock as "with waiters": it cannot know whether it was the last one.
  while (state_.exchange(kHeldWithWaiters, std::memory_order_acquire) != kFree) {
    futex(state_, FUTEX_WAIT, kHeldWithWaiters);
  }
}

bool HandlerLock::try_lock() noexcept {
  std::uint32_t seen = kFree;
  return state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire);
}

void HandlerLock::unlock() noexcept {
  if (state_.exchange(kFree, std::memory_order_release) == kHeldWithWaiters) {
    futex(state_, FUTEX_WAKE, 1);
  }
}

}  // namespace vellum::base
