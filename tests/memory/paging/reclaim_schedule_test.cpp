// When private copies are dropped. The test owns the clock.
#include "memory/paging/reclaim_schedule.hpp"

#include <gtest/gtest.h>

namespace vellum::region::test {
namespace {

using namespace std::chrono_literals;

class ReclaimScheduleTest : public testing::Test {
 protected:
  // Tries to start a pass; `found` pages were found dirty since the last one.
  ReclaimSchedule::Pause start(std::int64_t found = 0) {
    return schedule_.start_pass(seen_, [&] { return found; });
  }
  void note_commit() { ++seen_.commit_events; }

  ReclaimPolicy policy_;
  ReclaimSchedule schedule_{policy_};
  ReclaimSchedule::Observation seen_{ReclaimSchedule::Time(1h), 0, 8192, false, 8192 * kPageBytes};
};

TEST_F(ReclaimScheduleTest, APassStartsAfterSomeTimeWithoutACommit) {
  note_commit();
  EXPECT_EQ(start(8192), policy_.between_passes);
  seen_.now += policy_.quiet - 1ms;
  EXPECT_EQ(start(8192), policy_.between_passes);
  seen_.now += 1ms;
  EXPECT_EQ(start(8192), std::nullopt);
  EXPECT_TRUE(schedule_.is_running());
  EXPECT_TRUE(schedule_.is_quiet());
}

TEST_F(ReclaimScheduleTest, ACommitPostponesThePass) {
  note_commit();
  start();
  seen_.now += policy_.quiet - 1ms;
  note_commit();
  EXPECT_EQ(start(8192), policy_.between_passes);
  seen_.now += 1ms;
  EXPECT_EQ(start(8192), policy_.between_passes);
}

TEST_F(ReclaimScheduleTest, OnePassFollowsTheLastCommit) {
  note_commit();
  start();
  seen_.now += policy_.quiet;
  ASSERT_EQ(start(8192), std::nullopt);
  schedule_.end_pass(seen_.now);
  EXPECT_EQ(start(8192), 0ms) << "nothing is due before the next commit";
  seen_.now += 1h;
  EXPECT_EQ(start(8192), 0ms);
  note_commit();
  EXPECT_EQ(start(8192), policy_.between_passes);
}

TEST_F(ReclaimScheduleTest, PassesFollowOneAnotherWhileBaseCopiesGrow) {
  seen_.grows = true;
  note_commit();
  ASSERT_EQ(start(8192), std::nullopt);
  EXPECT_FALSE(schedule_.is_quiet());
  schedule_.end_pass(seen_.now);
  note_commit();
  EXPECT_EQ(start(), policy_.between_passes);
  seen_.now += policy_.between_passes;
  EXPECT_EQ(start(), std::nullopt);
}

TEST_F(ReclaimScheduleTest, FewPagesAreKept) {
  seen_.grows = true;
  note_commit();
  EXPECT_EQ(start(policy_.few_pages), policy_.between_passes);
  EXPECT_EQ(start(1), std::nullopt) << "the found pages add up";
}

TEST_F(ReclaimScheduleTest, ASmallShareOfBaseCopiesIsKept) {
  seen_.grows = true;
  seen_.base_copies = 64 * policy_.few_pages;
  note_commit();
  EXPECT_EQ(start(4 * policy_.few_pages), policy_.between_passes);
  EXPECT_EQ(start(1), std::nullopt);
}

TEST_F(ReclaimScheduleTest, ASmallShareOfTheLimitIsKept) {
  seen_.grows = true;
  seen_.limit_bytes = 16 * (8192 + 4096) * kPageBytes;
  note_commit();
  EXPECT_EQ(start(4096), policy_.between_passes);
  EXPECT_EQ(start(1), std::nullopt);
}

TEST_F(ReclaimScheduleTest, APassEndsWithHalfOfTheThreshold) {
  seen_.grows = true;
  note_commit();
  ASSERT_EQ(start(8192), std::nullopt);
  EXPECT_TRUE(schedule_.note_counted(2000, seen_.base_copies, seen_.now));
  schedule_.note_dropped(2000 - policy_.few_pages / 2 - 1);
  EXPECT_TRUE(schedule_.goes_on(seen_.base_copies));
  schedule_.note_dropped(1);
  EXPECT_FALSE(schedule_.goes_on(seen_.base_copies));
}

TEST_F(ReclaimScheduleTest, APassEndsWhenTheCountIsSmall) {
  seen_.grows = true;
  note_commit();
  ASSERT_EQ(start(8192), std::nullopt);
  EXPECT_FALSE(schedule_.note_counted(policy_.few_pages, seen_.base_copies, seen_.now));
  EXPECT_FALSE(schedule_.is_running());
}

TEST_F(ReclaimScheduleTest, ACommitEndsTheQuietOfAPass) {
  note_commit();
  start();
  seen_.now += policy_.quiet;
  ASSERT_EQ(start(2000), std::nullopt);
  EXPECT_TRUE(schedule_.is_urgent(seen_.base_copies));
  schedule_.note_events(seen_.commit_events);
  EXPECT_TRUE(schedule_.is_quiet());
  schedule_.note_events(seen_.commit_events + 1);
  EXPECT_FALSE(schedule_.is_quiet());
  EXPECT_FALSE(schedule_.is_urgent(seen_.base_copies));
  EXPECT_TRUE(schedule_.is_urgent(4)) << "private pages take much of the memory";
}

}  // namespace
}  // namespace vellum::region::test
