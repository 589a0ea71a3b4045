// Whether partial fills pay: they do if most chunks are evicted before they must be completed.
#include "memory/paging/partial_fill_policy.hpp"

#include <gtest/gtest.h>

namespace vellum::region::test {
namespace {

TEST(PartialFillPolicy, PartialFillsPayUntilMostChunksAreCompleted) {
  PartialFillPolicy policy;
  EXPECT_TRUE(policy.choose_partial());
  for (int i = 0; i < 10; ++i) policy.note_evicted();
  for (int i = 0; i < 10; ++i) policy.note_completed();
  EXPECT_TRUE(policy.pays());
  policy.note_completed();
  EXPECT_FALSE(policy.pays());
  std::uint32_t probes = 0;
  for (std::uint32_t i = 0; i < 10 * PartialFillPolicy::kProbe; ++i)
    probes += policy.choose_partial();
  EXPECT_EQ(probes, 10U);
}

TEST(PartialFillPolicy, OldChunksAreForgotten) {
  PartialFillPolicy policy;
  for (std::uint32_t i = 0; i < 100 * PartialFillPolicy::kMaxChunks; ++i) policy.note_completed();
  std::uint32_t notes = 0;
  while (!policy.pays()) {
    policy.note_evicted();
    ASSERT_LT(++notes, 2 * PartialFillPolicy::kMaxChunks);
  }
}

TEST(PartialFillPolicy, AQueryChangesNothing) {
  PartialFillPolicy policy;
  policy.note_completed();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(policy.pays());
  EXPECT_TRUE(policy.choose_partial()) << "the first probe";
}

}  // namespace
}  // namespace vellum::region::test
