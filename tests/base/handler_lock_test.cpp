#include "base/threads/handler_lock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace vellum::base {
namespace {

TEST(HandlerLock, OneHolderAtATime) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  HandlerLock lock;
  long counter = 0;  // not atomic: lost updates show that the lock does not exclude
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const std::lock_guard hold(lock);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, long{kThreads} * kRounds);
}

TEST(HandlerLock, TryLockRefusesAHeldLock) {
  HandlerLock lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(HandlerLock, WaitersAreWokenAndErrnoStays) {
  HandlerLock lock;
  lock.lock();
  std::atomic<int> through{0};
  std::atomic<int> errno_lost{0};
  std::vector<std::thread> waiters;
  for (int waiter = 0; waiter < 3; ++waiter) {
    waiters.emplace_back([&] {
      errno = EXDEV;
      lock.lock();
      through.fetch_add(1);
      lock.unlock();
      if (errno != EXDEV) errno_lost.fetch_add(1);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // let them reach the futex
  EXPECT_EQ(through, 0);
  lock.unlock();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(through, 3);
  EXPECT_EQ(errno_lost, 0);
}

// Locks are in tables that the kernel provides zeroed.
TEST(HandlerLock, ZeroBytesAreAFreeLock) {
  alignas(HandlerLock) unsigned char memory[sizeof(HandlerLock)];
  std::memset(memory, 0, sizeof memory);
  auto* lock = reinterpret_cast<HandlerLock*>(memory);
  EXPECT_TRUE(lock->try_lock());
  lock->unlock();
}

}  // namespace
}  // namespace vellum::base
