// Commits of a region and the steps of its gc alternate.
#include "region/gc_pacing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace vellum::region {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kMaxLagBytes = 16 * kMiB;
using namespace std::chrono_literals;

TEST(GcPacing, AStepStartsAfterTheCommit) {
  GcPacing turns(1h);
  GcPacing::Collection collection(turns);
  std::atomic<bool> asked = false, over = false, over_at_step = false;
  std::thread collector;
  {
    const GcPacing::Commit commit(turns);
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

TEST(GcPacing, AMovedCommitIsOneCommit) {
  GcPacing turns(1h);
  GcPacing::Collection collection(turns);
  {
    GcPacing::Commit first(turns);
    const GcPacing::Commit second = std::move(first);
  }
  collection.next_step(0);  // would wait for an hour
}

// No step waits without end, even when the commit never ends.
TEST(GcPacing, AStepStartsAfterTheLongestWait) {
  GcPacing turns(1ms);
  GcPacing::Collection collection(turns);
  const GcPacing::Commit commit(turns);
  collection.next_step(0);
}

TEST(GcPacing, WrittenBytesCountDuringACollection) {
  GcPacing turns;
  EXPECT_FALSE(turns.keep_in_step(2 * kMaxLagBytes, kMaxLagBytes)) << "no collector";
  {
    GcPacing::Collection collection(turns);
    EXPECT_FALSE(turns.keep_in_step(kMaxLagBytes - 1, kMaxLagBytes));
    EXPECT_TRUE(turns.keep_in_step(1, kMaxLagBytes));
    EXPECT_FALSE(turns.keep_in_step(1, kMaxLagBytes)) << "it is reported once";
    EXPECT_TRUE(turns.keep_in_step(kMaxLagBytes - 1, kMaxLagBytes)) << "and again";
    EXPECT_FALSE(turns.keep_in_step(1, kMaxLagBytes));
  }
  const GcPacing::Collection again(turns);
  EXPECT_FALSE(turns.keep_in_step(kMaxLagBytes - 1, kMaxLagBytes)) << "each begins at nothing";
}

TEST(GcPacing, FreedBytesReduceTheLag) {
  GcPacing turns;
  GcPacing::Collection collection(turns);
  collection.next_step(kMaxLagBytes);
  EXPECT_FALSE(turns.keep_in_step(kMaxLagBytes, kMaxLagBytes));
  EXPECT_FALSE(turns.keep_in_step(8 * kMiB, kMaxLagBytes));
}

// It waits for the step, a minute if need be.
TEST(GcPacing, ACommitWaitsForACollectorThatIsBehind) {
  GcPacing turns(1min, 1min);
  GcPacing::Collection collection(turns);
  collection.next_step(0);
  std::thread collector([&] { collection.next_step(kMaxLagBytes); });
  EXPECT_FALSE(turns.keep_in_step(kMaxLagBytes + kMiB, kMaxLagBytes));
  collector.join();
}

TEST(GcPacing, ACommitWaitsForNoCollectorThatHasEnded) {
  GcPacing turns(1min, 1min);
  {
    GcPacing::Collection collection(turns);
    collection.next_step(0);
  }
  EXPECT_FALSE(turns.keep_in_step(2 * kMaxLagBytes, kMaxLagBytes));
}

}  // namespace
}  // namespace vellum::region
