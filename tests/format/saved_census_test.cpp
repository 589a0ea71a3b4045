#include "format/saved_census.hpp"
#include "format/whole_file.hpp"

#include <gtest/gtest.h>

#include "format/checks.hpp"
#include "format/magic.hpp"
#include "format/samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using samples::sealed;

const char* problem(const Bytes& bytes, SavedCensus& out) {
  return decode_saved_census(bytes, samples::store_id(), out);
}

Bytes encoded(const SavedCensus& census = samples::saved_census()) {
  return encode_saved_census(census, samples::store_id());
}

TEST(SavedCensus, ComesBack) {
  SavedCensus back;
  ASSERT_EQ(problem(encoded(), back), nullptr);
  EXPECT_EQ(back, samples::saved_census());
  ASSERT_EQ(problem(encoded({}), back), nullptr);
  EXPECT_EQ(back, SavedCensus{});
}

TEST(SavedCensus, SealedTruncationsAreRefused) {
  const Bytes bytes = encoded();
  SavedCensus back;
  for (std::size_t n = 8 + kWholeFileHeaderBytes; n + 1 < bytes.size(); ++n) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_NE(problem(sealed(cut), back), nullptr) << n;
  }
  EXPECT_EQ(back, SavedCensus{});
}

// A right checksum over numbers that lead out of the tables.
TEST(SavedCensus, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    SavedCensus census = samples::saved_census(), back;
    change(census);
    return problem(encoded(census), back) != nullptr;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].roots[1] = 5; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].roots.clear(); }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].roots.assign(kMaxRunsPerVersion + 1, 0); }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].records[0].count = 6; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].records[0].count = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].records[0].first = 5; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].records[0].first = UINT32_MAX; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[0].records.clear(); }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].records[1].first = 1; }));  // not apart
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].records[1].first = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].packs[1] = c.parts[1].packs[0]; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].packs.clear(); }));
  EXPECT_TRUE(refused([](auto& c) { c.records[1] = c.records[0]; }));
  EXPECT_TRUE(refused([](auto& c) { std::swap(c.records[0], c.records[1]); }));
  EXPECT_TRUE(refused([](auto& c) { c.records[0].offset_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.records[4].offset_bytes = kMaxPackOffsetBytes; }));
  EXPECT_TRUE(refused([](auto& c) { c.lines[2] = UINT32_MAX; }));
}

TEST(SavedCensus, ChangedBytesUnderARightChecksumStayInside) {
  const Bytes good = encoded();
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    }
    SavedCensus back;
    if (problem(sealed(bytes), back) != nullptr) continue;
    for (const auto& part : back.parts) {
      for (const auto root : part.roots) ASSERT_LT(root, back.records.size());
      for (const auto& r : part.records) {
        ASSERT_LE(std::uint64_t{r.first} + r.count, back.records.size());
      }
    }
  }
}

}  // namespace
}  // namespace vellum::format
