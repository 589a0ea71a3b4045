#include "format/working_set.hpp"

#include <gtest/gtest.h>

#include "format/samples.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using samples::sealed;

const char* problem(const Bytes& bytes, WorkingSet& out) {
  return decode_working_set(bytes, samples::store_id(), out);
}

Bytes encoded_set(const WorkingSet& set = samples::working_set()) {
  return encode_working_set(set, samples::store_id());
}

TEST(WorkingSet, ComesBack) {
  WorkingSet back;
  ASSERT_EQ(problem(encoded_set(), back), nullptr);
  EXPECT_EQ(back, samples::working_set());
  ASSERT_EQ(problem(encoded_set({}), back), nullptr);
  EXPECT_EQ(back, WorkingSet{});
  WorkingSet whole;
  whole.ranges = {{0, kMaxPages}, {0, kMaxPages}};
  ASSERT_EQ(problem(encoded_set(whole), back), nullptr);
  EXPECT_EQ(back, whole);
}

TEST(WorkingSet, TheFirstRangesAreKept) {
  WorkingSet set, back;
  // The maximum number of bytes of a range.
  for (std::uint64_t i = 0; i < kMaxWorkingSetRanges + 10; ++i) {
    set.ranges.push_back({i % 2 == 0 ? 0 : kMaxPages / 2, kMaxPages / 2});
  }
  const Bytes bytes = encoded_set(set);
  EXPECT_LE(bytes.size(), kMaxWorkingSetBytes);
  ASSERT_EQ(problem(bytes, back), nullptr);
  set.ranges.resize(kMaxWorkingSetRanges);
  EXPECT_EQ(back, set);
}

TEST(WorkingSet, SealedTruncationsAndATailAreRefused) {
  Bytes bytes = encoded_set();
  WorkingSet back;
  for (std::size_t n = 8 + kWholeFileHeaderBytes; n < bytes.size(); ++n) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_NE(problem(sealed(cut), back), nullptr) << n;
  }
  EXPECT_EQ(back, WorkingSet{});
  bytes.push_back(std::byte{0});
  EXPECT_NE(problem(sealed(bytes), back), nullptr);
}

TEST(WorkingSet, TooLargeAFileIsRefused) {
  WorkingSet back;
  EXPECT_STREQ(problem(Bytes(kMaxWorkingSetBytes + 1), back), "larger than any working set");
}

TEST(WorkingSet, RangesOutsideOfAnyRegionAreRefused) {
  const auto refused = [](PageRange range) {
    WorkingSet set = samples::working_set(), back;
    set.ranges[1] = range;
    return problem(encoded_set(set), back) != nullptr;
  };
  EXPECT_FALSE(refused({0, 1}));
  EXPECT_FALSE(refused({kMaxPages - 1, 1}));
  EXPECT_TRUE(refused({kMaxPages, 1}));
  EXPECT_TRUE(refused({kMaxPages - 1, 2}));
  EXPECT_TRUE(refused({UINT64_MAX, 1}));
  EXPECT_TRUE(refused({1, 0}));  // 2^64 pages
  EXPECT_TRUE(refused({0, kMaxPages + 1}));
}

TEST(WorkingSet, ChangedBytesUnderARightChecksumStayInside) {
  const Bytes good = encoded_set();
  std::mt19937_64 random(5);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    Bytes bytes = good;
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
    }
    WorkingSet back, again;
    if (problem(sealed(bytes), back) != nullptr) continue;
    ++accepted;
    for (const auto& r : back.ranges) {
      ASSERT_LT(r.first, kMaxPages);
      ASSERT_LE(r.count, kMaxPages - r.first);
    }
    ASSERT_EQ(problem(encoded_set(back), again), nullptr);
    ASSERT_EQ(back, again);
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace vellum::format
