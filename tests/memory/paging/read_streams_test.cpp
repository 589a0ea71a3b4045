// The chunks to read ahead, and those to evict first, detected from a region's faults.
#include "memory/paging/read_streams.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

namespace vellum::region::test {
namespace {

constexpr std::size_t kMax = 32;

std::vector<std::size_t> all_next(ReadStreams& streams) {
  std::vector<std::size_t> chunks;
  while (const auto ahead = streams.next()) chunks.push_back(ahead->chunk);
  return chunks;
}

TEST(ReadStreams, TheLastFaultIsRecordedAsReadOrWrite) {
  ReadStreams streams;
  for (std::size_t at = 10; at < 13; ++at) streams.note_fault({at, false, true}, kMax);
  const auto ahead = streams.next();
  ASSERT_TRUE(ahead.has_value());
  EXPECT_EQ(ahead->chunk, 13U);
  EXPECT_TRUE(ahead->writes);
  streams.note_fault({14, false, false}, kMax);
  EXPECT_FALSE(streams.next()->writes);
}

TEST(ReadStreams, ThreeFaultsInOrderMakeAStream) {
  ReadStreams streams;
  EXPECT_TRUE(streams.note_fault({10}, kMax).empty());
  EXPECT_TRUE(streams.note_fault({11}, kMax).empty());
  EXPECT_TRUE(all_next(streams).empty());
  const auto run = streams.note_fault({12}, kMax);
  EXPECT_EQ(run.first, 13U);
  EXPECT_EQ(run.end, 17U);
  EXPECT_EQ(all_next(streams), (std::vector<std::size_t>{13, 14, 15, 16}));
  EXPECT_TRUE(all_next(streams).empty()) << "each once";
}

// The largest region has 2^34 chunks of one page.
TEST(ReadStreams, ChunksOfTheLargestRegionMakeAStream) {
  for (const std::size_t first : {(1ULL << 32) - 2, 1ULL << 32, (1ULL << 34) - 8}) {
    ReadStreams streams;
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(streams.note_fault({first + i}, kMax).empty());
    const auto run = streams.note_fault({first + 2}, kMax);
    EXPECT_EQ(run.first, first + 3);
    EXPECT_EQ(run.end, first + 7);
    EXPECT_EQ(all_next(streams),
              (std::vector<std::size_t>{first + 3, first + 4, first + 5, first + 6}));
    ReadStreams announced;
    announced.note_fault({first, true}, kMax);
    announced.note_fault({first + 4, true}, kMax);
    std::vector<std::size_t> behind;
    for (std::size_t index = 0; announced.take_behind(index);) behind.push_back(index);
    EXPECT_EQ(behind, (std::vector<std::size_t>{first, first + 1, first + 2}));
  }
}

TEST(ReadStreams, ThreeFaultsDownwardsMakeAStream) {
  ReadStreams streams;
  EXPECT_TRUE(streams.note_fault({12}, kMax).empty());
  EXPECT_TRUE(streams.note_fault({11}, kMax).empty());
  auto run = streams.note_fault({10}, kMax);
  EXPECT_EQ(all_next(streams), (std::vector<std::size_t>{9, 8, 7, 6}));
  std::vector<std::size_t> taken;
  while (!run.empty()) taken.push_back(run.take());
  EXPECT_EQ(taken, (std::vector<std::size_t>{9, 8, 7, 6}));
  run = streams.note_fault({8}, kMax);
  EXPECT_EQ(run.first, 4U) << "caught up: the same window";
  EXPECT_EQ(run.end, 8U);
  EXPECT_EQ(all_next(streams), (std::vector<std::size_t>{5, 4})) << "each once";
  EXPECT_FALSE(streams.note_fault({3}, kMax).empty()) << "used up";
  EXPECT_EQ(all_next(streams), (std::vector<std::size_t>{2, 1, 0})) << "not below the region";
  EXPECT_TRUE(streams.note_fault({0}, kMax).empty());
}

// As in sorting: from both ends to the middle.
TEST(ReadStreams, StreamsOfBothDirectionsCoexist) {
  ReadStreams streams;
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(streams.note_fault({i}, kMax).empty(), i < 2) << i;
    EXPECT_EQ(streams.note_fault({1000 - i}, kMax).empty(), i < 2) << i;
  }
}

TEST(ReadStreams, AnAnnouncedStreamGoesUpwards) {
  ReadStreams streams;
  EXPECT_FALSE(streams.note_fault({5, true}, kMax).empty());
  const auto run = streams.note_fault({4, true}, kMax);
  EXPECT_EQ(run.first, 5U);
  EXPECT_FALSE(run.downwards);
}

TEST(ReadStreams, OneFaultStartsAnAnnouncedStream) {
  ReadStreams streams;
  EXPECT_EQ(streams.note_fault({5, true}, kMax).end, 10U);
}

TEST(ReadStreams, AUsedUpWindowDoubles) {
  ReadStreams streams;
  std::size_t at = 0;
  std::size_t expected = 4;
  for (int i = 0; i < 6; ++i) {
    const auto run = streams.note_fault({at, true}, kMax);
    EXPECT_EQ(run.end - run.first, expected);
    at = run.end;
    expected = std::min(2 * expected, kMax);
  }
}

TEST(ReadStreams, AReaderThatCatchesUpKeepsItsWindow) {
  ReadStreams streams;
  for (std::size_t at = 0; at < 20; ++at) {
    const auto run = streams.note_fault({at, true}, kMax);
    EXPECT_EQ(run.first, at + 1);
    EXPECT_EQ(run.end, at + 5);
  }
  EXPECT_EQ(all_next(streams), (std::vector<std::size_t>{20, 21, 22, 23}));
}

TEST(ReadStreams, NothingIsReadAheadWithoutFreeMemory) {
  ReadStreams streams;
  for (std::size_t at = 0; at < 20; ++at) EXPECT_TRUE(streams.note_fault({at, true}, 0).empty());
  EXPECT_TRUE(all_next(streams).empty());
}

TEST(ReadStreams, RandomFaultsMakeNoStream) {
  ReadStreams streams;
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(streams.note_fault({random() % (1u << 30)}, kMax).empty());
  }
}

TEST(ReadStreams, OtherFaultsDoNotEndAStream) {
  ReadStreams streams;
  std::mt19937_64 random(1);
  std::size_t at = 0;
  for (; at < 16; ++at) streams.note_fault({at}, kMax);
  for (int i = 0; i < 10; ++i) streams.note_fault({1000 + random() % (1u << 29)}, kMax);
  EXPECT_FALSE(streams.note_fault({at}, kMax).empty());
}

TEST(ReadStreams, NewStreamsReplaceDeadOnes) {
  ReadStreams streams;
  for (std::size_t part = 0; part < 4; ++part) {
    for (std::size_t i = 0; i < 16; ++i) streams.note_fault({part * 1000 + i}, kMax);
  }
  bool found = false;
  for (std::size_t at = 10'000; at < 10'100 && !found; ++at) {
    found = !streams.note_fault({at}, kMax).empty();
  }
  EXPECT_TRUE(found);
}

TEST(ReadStreams, FourReadersEachHaveAStream) {
  ReadStreams streams;
  for (std::size_t i = 0; i < 10; ++i) {
    for (std::size_t part = 0; part < 4; ++part) {
      EXPECT_EQ(streams.note_fault({part * 1000 + i}, kMax).empty(), i < 2) << i;
    }
  }
}

TEST(ReadStreams, ChunksThatAnAnnouncedReaderPassedAreReturnedOnce) {
  ReadStreams streams;
  for (std::size_t at = 100; at < 105; ++at) streams.note_fault({at, true}, kMax);
  for (std::size_t at = 500; at < 505; ++at) streams.note_fault({at}, kMax);
  std::vector<std::size_t> behind;
  for (std::size_t index = 0; streams.take_behind(index);) behind.push_back(index);
  EXPECT_EQ(behind, (std::vector<std::size_t>{100, 101, 102}));
}

}  // namespace
}  // namespace vellum::region::test
