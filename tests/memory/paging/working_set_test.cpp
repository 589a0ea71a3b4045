// Which chunks are in use, and which are prefetched next.
#include "memory/paging/working_set.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace vellum::region {
namespace {

constexpr std::size_t kAll = 1000, kPages = 16;

std::vector<std::size_t> all_of(WorkingSet& set, std::size_t chunks) {
  std::vector<std::size_t> out;
  for (WorkingSet::PrefetchCandidate w; out.size() < 100 && set.next(chunks, w);)
    out.push_back(w.index);
  return out;
}

using List = std::vector<std::size_t>;

TEST(WorkingSetList, ChunksHaveTheOrderOfTheRanges) {
  WorkingSet set(kAll, {{64, 32}, {0, 16}, {160, 16}}, kPages, kAll);
  EXPECT_TRUE(set.has_candidates());
  EXPECT_EQ(all_of(set, kAll), (List{4, 5, 0, 10}));
  EXPECT_FALSE(set.has_candidates());
}

// The list may be from a region with another chunk size.
TEST(WorkingSetList, RangesNeedNotBeWholeChunks) {
  WorkingSet set(kAll, {{15, 2}, {33, 1}, {79, 1}}, kPages, kAll);
  EXPECT_EQ(all_of(set, kAll), (List{0, 1, 2, 4}));
}

TEST(WorkingSetList, ChunksPastTheEndAreOmitted) {
  WorkingSet set(kAll, {{kPages * 8, kPages * 5}, {1ULL << 33, 1ULL << 33}, {0, 1}}, kPages, kAll);
  EXPECT_EQ(all_of(set, 10), (List{8, 9, 0}));
}

TEST(WorkingSetList, AListOfRepeatedRangesEnds) {
  WorkingSet set(kAll, std::vector<format::PageRange>(5000, {0, 4 * kPages}), kPages, kAll);
  EXPECT_EQ(all_of(set, 10).size(), 10U);
}

TEST(WorkingSetList, TheListStopsAtItsLimit) {
  WorkingSet none(kAll, {{0, 100 * kPages}}, kPages, 0);
  EXPECT_FALSE(none.has_candidates());
  EXPECT_EQ(all_of(none, kAll), List{});
  WorkingSet set(kAll, {{0, 100 * kPages}}, kPages, 3);
  WorkingSet::PrefetchCandidate w;
  ASSERT_TRUE(set.next(kAll, w));
  set.skip(w);  // it was present
  ASSERT_TRUE(set.next(kAll, w));
  set.skip(w, 40);  // zeros
  EXPECT_EQ(all_of(set, kAll), (List{40, 41, 42}));
  WorkingSet ended(kAll, {{0, 100 * kPages}}, kPages, 3);
  ended.end();
  EXPECT_EQ(all_of(ended, kAll), List{});
}

TEST(WorkingSetList, SkippingEndsWithItsRange) {
  WorkingSet set(kAll, {{0, kPages}, {0, 5 * kPages}}, kPages, kAll);
  WorkingSet::PrefetchCandidate first, second;
  ASSERT_TRUE(set.next(kAll, first));
  ASSERT_TRUE(set.next(kAll, second));
  set.skip(first, 4);
  EXPECT_EQ(all_of(set, kAll), (List{1, 2, 3, 4}));
}

TEST(WorkingSetList, NumbersFollowTheOrderOfFirstFills) {
  WorkingSet set(kAll, {}, kPages, kAll);
  EXPECT_EQ(set.number_of(7), 0U);
  for (const std::size_t index : {7U, 3U, 900U, 3U, 7U}) set.note(index);
  EXPECT_LT(set.number_of(7), set.number_of(3));
  EXPECT_LT(set.number_of(3), set.number_of(900));
  set.forget(7);
  EXPECT_EQ(set.number_of(7), 0U);
  set.note(7);
  EXPECT_GT(set.number_of(7), set.number_of(900));
}

TEST(WorkingSetList, EachChunkIsGivenToOneThread) {
  WorkingSet set(kAll, {{0, kAll * kPages}}, kPages, kAll);
  std::vector<std::vector<std::size_t>> got(3);
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&] {
      for (WorkingSet::PrefetchCandidate w; set.next(kAll, w);) mine.push_back(w.index);
    });
  }
  for (auto& thread : threads) thread.join();
  List all;
  for (const auto& mine : got) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), kAll);
  for (std::size_t i = 0; i < kAll; ++i) ASSERT_EQ(all[i], i);
}

}  // namespace
}  // namespace vellum::region
