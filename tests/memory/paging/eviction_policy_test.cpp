// Which chunk is evicted next: hinted ones, those that a reader has passed, then cold ones in clock
// order.
#include "memory/paging/eviction_policy.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vellum::region::test {
namespace {

class EvictionPolicyTest : public testing::Test {
 protected:
  static constexpr std::size_t kChunks = 64;

  void fill(std::size_t index) {
    ASSERT_TRUE(chunks_.claim(index, Chunk::kMissing));
    chunks_.touch(index * chunks_.chunk_pages(), chunks_.chunk_pages());
    policy_.note_arrival(index);
    chunks_.settle(index, 1, Chunk::kPresent);
  }
  void evict(std::size_t index) {
    ASSERT_TRUE(chunks_.claim(index, Chunk::kPresent));
    policy_.note_departure(index);
    chunks_.settle(index, 1, Chunk::kMissing);
  }
  // The next victims of one sweep, at most `most`.
  std::vector<std::size_t> victims(std::size_t most) {
    EvictionPolicy::ClockSweep sweep{kChunks};
    std::vector<std::size_t> out;
    for (std::size_t index = 0; out.size() < most && policy_.next_cold(sweep, index);)
      out.push_back(index);
    return out;
  }

  ChunkTable chunks_{kChunks * kDefaultChunkBytes, kDefaultChunkBytes};
  ReadStreams streams_;
  EvictionPolicy policy_{chunks_, streams_};
};

TEST_F(EvictionPolicyTest, TheHandVisitsPresentChunksInOrder) {
  for (const std::size_t index : {5u, 2u, 9u}) fill(index);
  EXPECT_EQ(victims(2), (std::vector<std::size_t>{2, 5}));
  EXPECT_EQ(victims(2), (std::vector<std::size_t>{9, 2}))
      << "the sweep did not continue after the last victim";
}

TEST_F(EvictionPolicyTest, ASweepEndsAfterFourRevolutions) {
  EXPECT_EQ(victims(1), std::vector<std::size_t>());
  fill(3);
  EXPECT_EQ(victims(100).size(), 4U) << "the caller has evicted nothing";
}

TEST_F(EvictionPolicyTest, AChunkThatIsRefilledSoonIsSkippedTwice) {
  for (std::size_t index = 0; index < 4; ++index) fill(index);
  evict(1);
  fill(1);
  EXPECT_FALSE(policy_.is_cold(1));
  EXPECT_EQ(victims(7), (std::vector<std::size_t>{0, 2, 3, 0, 2, 3, 0}));
  EXPECT_TRUE(policy_.is_cold(1));
  EXPECT_EQ(victims(1), std::vector<std::size_t>{1});
}

TEST_F(EvictionPolicyTest, AChunkThatIsRefilledLateIsCold) {
  fill(0);
  evict(0);
  for (std::size_t index = 1; index < 9; ++index) {
    fill(index);
    evict(index);
  }
  fill(0);
  EXPECT_TRUE(policy_.is_cold(0));
}

TEST_F(EvictionPolicyTest, AQueryCoolsNothing) {
  fill(0);
  fill(1);
  evict(0);
  fill(0);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(policy_.is_cold(0));
  policy_.make_cold(0);
  EXPECT_TRUE(policy_.is_cold(0));
}

TEST_F(EvictionPolicyTest, HintedChunksAreReturnedOnce) {
  policy_.hint(7, 2);
  std::size_t index = 0;
  EXPECT_TRUE(policy_.take_hinted(index));
  EXPECT_EQ(index, 7U);
  EXPECT_TRUE(policy_.take_hinted(index));
  EXPECT_EQ(index, 8U);
  EXPECT_FALSE(policy_.take_hinted(index));
}

TEST_F(EvictionPolicyTest, ChunksThatAReaderHasPassedFollowTheHints) {
  for (std::size_t at = 10; at < 14; ++at) streams_.note_fault({at, true, false}, 32);
  policy_.hint(50, 1);
  std::vector<std::size_t> taken;
  for (std::size_t index = 0; policy_.take_hinted(index);) taken.push_back(index);
  EXPECT_EQ(taken, (std::vector<std::size_t>{50, 10, 11}));
}

TEST_F(EvictionPolicyTest, EvictionsAreCounted) {
  fill(0);
  evict(0);
  fill(0);
  evict(0);
  EXPECT_EQ(policy_.evictions(), 2U);
}

TEST(EvictionHints, EachChunkIsReturnedOnce) {
  EvictionHints hints;
  std::size_t index = 0;
  EXPECT_FALSE(hints.take(index));
  hints.add(7, 2);
  hints.add(0, 0);
  hints.add(3, 1);
  std::vector<std::size_t> taken;
  while (hints.take(index)) taken.push_back(index);
  EXPECT_EQ(taken, (std::vector<std::size_t>{7, 8, 3}));
}

TEST(EvictionHints, TheOldestRangesAreForgotten) {
  EvictionHints hints;
  for (std::size_t i = 0; i < 100; ++i) hints.add(i, 1);
  std::size_t index = 0, count = 0;
  for (; hints.take(index); ++count) EXPECT_GE(index, 84U);
  EXPECT_EQ(count, 16U);
}

}  // namespace
}  // namespace vellum::region::test
