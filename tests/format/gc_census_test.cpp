#include "format/gc_census.hpp"
#include "format/wire/whole_file.hpp"

#include <gtest/gtest.h>

#include "format/samples.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using samples::sealed;

const char* problem(const Bytes& bytes, GcCensus& out) {
  return decode_gc_census(bytes, samples::store_id(), out);
}

Bytes encoded(const GcCensus& census = samples::gc_census()) {
  return encode_gc_census(census, samples::store_id());
}

TEST(GcCensus, ARootOutsideItsPartIsRefused) {
  GcCensus census = samples::gc_census();
  census.parts.front().roots.front() = 4;  // a record, but none of this part
  GcCensus out;
  EXPECT_STREQ(problem(encoded(census), out), "malformed part");
}

TEST(GcCensus, ComesBack) {
  GcCensus back;
  ASSERT_EQ(problem(encoded(), back), nullptr);
  EXPECT_EQ(back, samples::gc_census());
  ASSERT_EQ(problem(encoded({}), back), nullptr);
  EXPECT_EQ(back, GcCensus{});
}

TEST(GcCensus, SealedTruncationsAreRefused) {
  const Bytes bytes = encoded();
  GcCensus back;
  for (std::size_t n = 8 + kWholeFileHeaderBytes; n + 1 < bytes.size(); ++n) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_NE(problem(sealed(cut), back), nullptr) << n;
  }
  EXPECT_EQ(back, GcCensus{});
}

// A right checksum over numbers that point out of the tables.
TEST(GcCensus, WhatCannotBeIsRefused) {
  const auto refused = [](auto change) {
    GcCensus census = samples::gc_census(), back;
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
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].records[1].first = 1; }));  // adjacent
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].records[1].first = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].packs[1] = c.parts[1].packs[0]; }));
  EXPECT_TRUE(refused([](auto& c) { c.parts[1].packs.clear(); }));
  EXPECT_TRUE(refused([](auto& c) { c.records[1] = c.records[0]; }));
  EXPECT_TRUE(refused([](auto& c) { std::swap(c.records[0], c.records[1]); }));
  EXPECT_TRUE(refused([](auto& c) { c.records[0].offset_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& c) { c.records[4].offset_bytes = kMaxPackOffsetBytes; }));
  EXPECT_TRUE(refused([](auto& c) { c.size_lines[2] = UINT32_MAX; }));
}

TEST(GcCensus, ChangedBytesUnderARightChecksumStayInside) {
  const Bytes good = encoded();
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    }
    GcCensus back;
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
