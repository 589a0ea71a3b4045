// How much a fault in a missing chunk fills; decided once per fault.
#include "memory/paging/fill_policy.hpp"

#include <gtest/gtest.h>

namespace vellum::region::test {
namespace {

class FillPolicyTest : public testing::Test {
 protected:
  static constexpr std::size_t kChunks = 1024;
  static constexpr std::uint64_t kLimitPages = 1000;

  FillPolicy policy(FillPolicy::FillSettings settings) {
    return {chunks_, streams_, partial_fills_, pager_, settings};
  }
  FillPolicy::FillDecision decide(FillPolicy policy, FillPolicy::MissingChunk chunk,
                                  bool unit_is_free = false) {
    return policy.decide(chunk, [=](std::size_t) { return unit_is_free; });
  }

  ChunkTable chunks_{kChunks * kDefaultChunkBytes, kDefaultChunkBytes};
  ReadStreams streams_;
  PartialFillPolicy partial_fills_;
  Pager pager_{kLimitPages * kPageBytes};
  const FillPolicy::FillSettings parts_{.is_shared = false, .may_fill_parts = true};
};

TEST_F(FillPolicyTest, WholeChunksAreFilledWhileMemoryIsPlenty) {
  EXPECT_EQ(decide(policy(parts_), {.index = 5}).scope, FillScope::whole);
  pager_.add_pages(kLimitPages * 3 / 4 - 1);
  EXPECT_EQ(decide(policy(parts_), {.index = 5}).scope, FillScope::whole);
}

TEST_F(FillPolicyTest, PartsAreFilledWhileMemoryIsShort) {
  pager_.add_pages(kLimitPages * 3 / 4);
  EXPECT_EQ(decide(policy(parts_), {.index = 5}).scope, FillScope::part);
  EXPECT_EQ(decide(policy({}), {.index = 5}).scope, FillScope::whole) << "the engine cannot";
  chunks_[6].advice = Advice::sequential;
  EXPECT_EQ(decide(policy(parts_), {.index = 6}).scope, FillScope::whole);
}

TEST_F(FillPolicyTest, WholeChunksAreFilledForASequentialReader) {
  pager_.add_pages(kLimitPages);
  for (std::size_t index = 5; index < 8; ++index) {
    const auto scope =
        decide(policy(parts_), {.index = index, .has_thread = true, .max_ahead = 32}).scope;
    EXPECT_EQ(scope, index == 5 ? FillScope::part : FillScope::whole) << index;
  }
}

TEST_F(FillPolicyTest, WholeChunksAreFilledWherePartsDoNotPay) {
  pager_.add_pages(kLimitPages);
  partial_fills_.note_completed();
  EXPECT_EQ(decide(policy(parts_), {.index = 5}).scope, FillScope::part) << "a probe";
  EXPECT_EQ(decide(policy(parts_), {.index = 9}).scope, FillScope::whole);
}

TEST_F(FillPolicyTest, AFaultTakesTheUnitOfABulkLoad) {
  BulkLoad load(kChunks, 32, kChunks);
  const FillPolicy::MissingChunk chunk{.index = 5, .has_thread = true, .load = &load};
  EXPECT_EQ(decide(policy({}), chunk, true).scope, FillScope::unit);
  EXPECT_EQ(decide(policy({}), chunk, false).scope, FillScope::whole) << "the unit is taken";
  chunks_[5].advice = Advice::random;
  EXPECT_EQ(decide(policy({}), chunk, true).scope, FillScope::whole);
}

TEST_F(FillPolicyTest, TheFirstSignOfABulkLoadWakesTheThread) {
  BulkLoad load(kChunks, 32, kChunks);
  std::size_t faults = 0;
  while (!load.begun()) {
    // Far apart, and downwards: no stream.
    const auto decision =
        decide(policy({}), {.index = kChunks - 1 - 37 * faults, .has_thread = true, .load = &load});
    ++faults;
    EXPECT_EQ(decision.wakes_thread, load.begun());
  }
  EXPECT_EQ(faults, kChunks / 64);
}

TEST_F(FillPolicyTest, ASharedVersionIsNeverFilledInParts) {
  pager_.add_pages(kLimitPages);
  const FillPolicy::FillSettings shared{.is_shared = true, .may_fill_parts = true};
  EXPECT_EQ(decide(policy(shared), {.index = 5, .has_thread = true}).scope, FillScope::shared);
  EXPECT_EQ(decide(policy(shared), {.index = 5}).scope, FillScope::whole);
}

TEST_F(FillPolicyTest, ASequentialReaderGetsReadAhead) {
  for (std::size_t index = 5; index < 8; ++index) {
    const auto decision = decide(policy({}), {.index = index, .has_thread = true, .max_ahead = 32});
    EXPECT_EQ(decision.wakes_thread, index == 7);
    EXPECT_EQ(decision.ahead.empty(), index != 7);
  }
  EXPECT_TRUE(decide(policy({}), {.index = 8, .max_ahead = 32}).ahead.empty()) << "no thread";
}

}  // namespace
}  // namespace vellum::region::test
