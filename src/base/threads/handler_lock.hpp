// base/threads/handler_lock.hpp: a lock that the fault handler may take.
//
// A futex word (Drepper, "Futexes are tricky", 2011, mutex 2): no allocation, no ownership
// bookkeeping, errno preserved. REQUIRES: the holder does not touch region memory. A faulting
// thread thus never waits for itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace vellum::base {

class HandlerLock {
 public:
  void lock() noexcept;
  bool try_lock() noexcept;
  void unlock() noexcept;  // REQUIRES: locked

 private:
  std::atomic<std::uint32_t> state_{
      0};  // 0 free, 1 held, 2 held with waiters; all zero bytes is a free lock
};

}  // namespace vellum::base
