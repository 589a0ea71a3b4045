#include "base/threads/thread_pool.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace vellum::base {
namespace {

class AnyPool : public testing::TestWithParam<std::size_t> {
 protected:
  ThreadPool pool{GetParam()};
};

TEST_P(AnyPool, CallsEveryIndexOnce) {
  for (std::size_t count : {0u, 1u, 2u, 3u, 1000u, 20'000u}) {
    std::vector<int> calls(count, 0);
    pool.parallel_for(count, [&](std::size_t index, std::size_t) { ++calls[index]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST_P(AnyPool, AWorkerNumberIsNeverInUseTwice) {
  std::vector<std::atomic<int>> inside(pool.workers() + 1);
  std::atomic<bool> clash{false};
  for (int round = 0; round < 20; ++round) {
    pool.parallel_for(50, [&](std::size_t, std::size_t worker) {
      if (inside.at(worker).fetch_add(1) != 0) clash = true;
      std::this_thread::yield();
      inside.at(worker).fetch_sub(1);
    });
  }
  EXPECT_FALSE(clash);
}

TEST_P(AnyPool, TheCallerIsWorkerZero) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> wrong{false};
  pool.parallel_for(2000, [&](std::size_t, std::size_t worker) {
    if ((worker == 0) != (std::this_thread::get_id() == caller)) wrong = true;
  });
  EXPECT_FALSE(wrong);
}

TEST_P(AnyPool, RethrowsAnExceptionAndCanBeUsedAgain) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> running{0};
    const auto body = [&](std::size_t index, std::size_t) {
      running.fetch_add(1);
      if (index == 7) {
        running.fetch_sub(1);
        throw std::runtime_error("seven");
      }
      running.fetch_sub(1);
    };
    EXPECT_THROW(pool.parallel_for(100, body), std::runtime_error);
    EXPECT_EQ(running, 0);
    std::atomic<int> calls{0};
    pool.parallel_for(10, [&](std::size_t, std::size_t) { calls.fetch_add(1); });
    EXPECT_EQ(calls, 10);
  }
}

TEST_P(AnyPool, StartsNoFurtherBodyAfterAnException) {
  std::atomic<std::size_t> started{0};
  const auto body = [&](std::size_t, std::size_t) {
    started.fetch_add(1);
    throw std::runtime_error("at once");
  };
  EXPECT_THROW(pool.parallel_for(10'000, body), std::runtime_error);
  EXPECT_LE(started, pool.workers() + 1);
}

TEST_P(AnyPool, CallsFromManyThreadsAreServedInTurn) {
  std::atomic<int> calls{0};
  std::atomic<int> bodies_of[4] = {};
  std::atomic<bool> overlap{false};
  std::vector<std::thread> callers;
  for (std::size_t caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      const auto body = [&](std::size_t, std::size_t) {
        bodies_of[caller].fetch_add(1);
        for (std::size_t other = 0; other < 4; ++other) {
          if (other != caller && bodies_of[other] != 0) overlap = true;
        }
        std::this_thread::yield();
        calls.fetch_add(1);
        bodies_of[caller].fetch_sub(1);
      };
      for (int round = 0; round < 5; ++round) pool.parallel_for(50, body);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls, 4 * 5 * 50);
  EXPECT_FALSE(overlap);
}

INSTANTIATE_TEST_SUITE_P(ThreadPool, AnyPool, testing::Values(0, 1, 3, 8));

// No body ends before all have started. Hence each runs in another thread.
TEST(ThreadPool, SeveralThreadsTakePart) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> bodies(4);
  std::atomic<int> begun{0};
  pool.parallel_for(4, [&](std::size_t, std::size_t worker) {
    bodies[worker].fetch_add(1);
    ++begun;
    while (begun < 4) std::this_thread::yield();
  });
  for (const auto& count : bodies) EXPECT_EQ(count, 1);
}

TEST(ThreadPool, UnusedPoolStartsAndStopsNothing) {
  const ThreadPool pool(4);
  EXPECT_EQ(pool.workers(), 4u);
}

TEST(ThreadPool, WorkersLeaveSignalsToTheApplicationButTakeFaults) {
  ThreadPool pool(2);
  std::atomic<int> checked{0};
  pool.parallel_for(64, [&](std::size_t, std::size_t worker) {
    if (worker == 0) {  // leaves indices to the others
      while (checked == 0) std::this_thread::yield();
      return;
    }
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGUSR1) == 1 &&
        sigismember(&blocked, SIGSEGV) == 0 && sigismember(&blocked, SIGBUS) == 0) {
      checked.fetch_add(1);
    } else {
      checked = -1000;
    }
  });
  EXPECT_GT(checked, 0);
  sigset_t caller;
  pthread_sigmask(SIG_SETMASK, nullptr, &caller);
  EXPECT_EQ(sigismember(&caller, SIGTERM), 0);
}

// The fork follows a job at once, while workers may still hold the pool's locks. Many
// rounds, because one round meets that state only once in ten.
TEST(ThreadPool, AForkedChildWorksAloneAndCanDestroyThePool) {
  for (int round = 0; round < 100; ++round) {
    auto pool = std::make_unique<ThreadPool>(2);
    pool->parallel_for(100, [](std::size_t, std::size_t) {});
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      int calls = 0;  // not atomic: no other thread exists
      for (int job = 0; job < 3; ++job) {
        pool->parallel_for(100, [&](std::size_t, std::size_t) { ++calls; });
      }
      pool.reset();
      ::_exit(calls == 300 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "round " << round;
  }
}

}  // namespace
}  // namespace vellum::base
