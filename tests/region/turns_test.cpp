// Commits of a region and the steps of its collector take turns.
#include "region/turns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace vellum::region {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kMostLagBytes = 16 * kMiB;
using namespace std::chrono_literals;

TEST(Turns, AStepBeginsWhenTheCommitIsOver) {
  Turns turns(1h);
  Turns::Collection collection(turns);
  std::atomic<bool> asked = false, over = false, over_at_step = false;
  std::thread collector;
  {
    const Turns::Commit commit(turns);
    collector = std::thread([&] {
      asked = true;
      collection.next_step(0);
      over_at_step = over.load();
    });
    while (!asked) std::this_thread::yield();
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // so that it could begin too early
    over = true;
  }
  collector.join();
  EXPECT_TRUE(over_at_step);
}

TEST(Turns, ACommitThatHasMovedOnIsOneCommit) {
  Turns turns(1h);
  Turns::Collection collection(turns);
  {
    Turns::Commit first(turns);
    const Turns::Commit second = std::move(first);
  }
  collection.next_step(0);  // would wait for an hour
}

// No step waits without end for its turn, even when the commit never ends.
TEST(Turns, AStepThatHasWaitedForLongBegins) {
  Turns turns(1ms);
  Turns::Collection collection(turns);
  const Turns::Commit commit(turns);
  collection.next_step(0);
}

TEST(Turns, WhatIsWrittenCountsWhileTheCollectorIsAtWork) {
  Turns turns;
  EXPECT_FALSE(turns.keep_in_step(2 * kMostLagBytes, kMostLagBytes)) << "no collector";
  {
    Turns::Collection collection(turns);
    EXPECT_FALSE(turns.keep_in_step(kMostLagBytes - 1, kMostLagBytes));
    EXPECT_TRUE(turns.keep_in_step(1, kMostLagBytes));
    EXPECT_FALSE(turns.keep_in_step(1, kMostLagBytes)) << "it is told once";
    EXPECT_TRUE(turns.keep_in_step(kMostLagBytes - 1, kMostLagBytes)) << "and again";
    EXPECT_FALSE(turns.keep_in_step(1, kMostLagBytes));
  }
  const Turns::Collection again(turns);
  EXPECT_FALSE(turns.keep_in_step(kMostLagBytes - 1, kMostLagBytes)) << "each begins at nothing";
}

TEST(Turns, WhatHasBeenFreedMakesUpForIt) {
  Turns turns;
  Turns::Collection collection(turns);
  collection.next_step(kMostLagBytes);
  EXPECT_FALSE(turns.keep_in_step(kMostLagBytes, kMostLagBytes));
  EXPECT_FALSE(turns.keep_in_step(8 * kMiB, kMostLagBytes));
}

// It waits for the step, a minute if need be.
TEST(Turns, ACommitWaitsForACollectorThatIsBehind) {
  Turns turns(1min, 1min);
  Turns::Collection collection(turns);
  collection.next_step(0);
  std::thread collector([&] { collection.next_step(kMostLagBytes); });
  EXPECT_FALSE(turns.keep_in_step(kMostLagBytes + kMiB, kMostLagBytes));
  collector.join();
}

TEST(Turns, ACommitWaitsForNoCollectorThatHasEnded) {
  Turns turns(1min, 1min);
  {
    Turns::Collection collection(turns);
    collection.next_step(0);
  }
  EXPECT_FALSE(turns.keep_in_step(2 * kMostLagBytes, kMostLagBytes));
}

}  // namespace
}  // namespace vellum::region
