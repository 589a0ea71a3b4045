// The threads that run the regions' tasks in rotation: all work is done, and tasks are added and
// removed.
#include "memory/paging/helper_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

namespace vellum::region::test {
namespace {

using std::chrono::milliseconds;

// Runs again immediately while `work` remains, and then after `pause`.
class Counting final : public BackgroundTask {
 public:
  explicit Counting(std::optional<milliseconds> pause = std::nullopt) : pause_(pause) {}
  std::optional<milliseconds> step() noexcept override {
    EXPECT_TRUE(joined.load());
    ++steps;
    int left = work.load();
    while (left > 0 && !work.compare_exchange_weak(left, left - 1)) {
    }
    return left > 0 ? milliseconds(0) : pause_;
  }
  void wait_for_work() const {
    while (work != 0) std::this_thread::yield();
  }
  std::atomic<bool> joined{true};
  std::atomic<int> work{0}, steps{0};

 private:
  const std::optional<milliseconds> pause_;
};

TEST(HelperThread, TasksRunUntilNoWorkRemains) {
  HelperThread thread;
  Counting one, two;
  ASSERT_TRUE(thread.join(one));
  ASSERT_TRUE(thread.join(two));
  for (int round = 0; round < 100; ++round) {
    one.work = 5;
    two.work = 50;
    thread.wake();
    one.wait_for_work();
    two.wait_for_work();
  }
  thread.leave(one);
  one.joined = false;
  two.work = 1;
  thread.wake();
  two.wait_for_work();
  thread.leave(two);
}

TEST(HelperThread, TasksRunAgainAfterTheShortestPause) {
  HelperThread thread;
  Counting never, later(milliseconds(1)), much_later(std::chrono::hours(1));
  for (Counting* region : {&never, &later, &much_later}) ASSERT_TRUE(thread.join(*region));
  later.work = 3;  // without wake()
  later.wait_for_work();
  for (const int steps = later.steps; later.steps < steps + 5;) std::this_thread::yield();
  for (Counting* region : {&later, &never, &much_later}) thread.leave(*region);
}

// A pause of an hour ends with the thread.
TEST(HelperThread, TheThreadEndsDuringAPause) {
  HelperThread thread;
  Counting region(std::chrono::hours(1));
  ASSERT_TRUE(thread.join(region));
  while (region.steps == 0) std::this_thread::yield();
  thread.leave(region);
}

// Removing the last task ends the thread, while new tasks start it again.
TEST(HelperThread, TasksAreAddedAndRemovedConcurrently) {
  HelperThread thread;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        Counting region;
        region.work = 3;
        ASSERT_TRUE(thread.join(region));
        thread.wake();
        if (i % 3 == 0) region.wait_for_work();
        thread.leave(region);
        region.joined = false;
      }
    });
  }
  for (auto& other : threads) other.join();
}

}  // namespace
}  // namespace vellum::region::test
