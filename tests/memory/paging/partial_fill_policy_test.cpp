// Whether parts of chunks pay: most chunks leave before all of them was needed.
#include "memory/paging/parts_measured.hpp"

#include <gtest/gtest.h>

namespace vellum::region::test {
namespace {

TEST(PartsMeasured, PayUntilMostChunksAreNeededWholly) {
  PartsMeasured parts;
  EXPECT_TRUE(parts.next());
  for (int i = 0; i < 10; ++i) parts.note(false);
  for (int i = 0; i < 10; ++i) parts.note(true);
  EXPECT_TRUE(parts.next());
  parts.note(true);
  std::uint32_t probes = 0;
  for (std::uint32_t i = 0; i < 10 * PartsMeasured::kProbe; ++i) probes += parts.next();
  EXPECT_EQ(probes, 10U);
}

TEST(PartsMeasured, OldChunksAreForgotten) {
  PartsMeasured parts;
  for (std::uint32_t i = 0; i < 100 * PartsMeasured::kMaxChunks; ++i) parts.note(true);
  EXPECT_TRUE(parts.next());  // the first probe
  EXPECT_FALSE(parts.next());
  std::uint32_t notes = 0;
  while (!parts.next() || !parts.next()) {
    parts.note(false);
    ASSERT_LT(++notes, 2 * PartsMeasured::kMaxChunks);
  }
}

}  // namespace
}  // namespace vellum::region::test
