// Tracked ranges: marked pages are taken, once, and no mark is lost during a take().
#include "memory/cards/tracked_range.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vellum/cards.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>
#include <vellum/error.hpp>

namespace vellum::cards {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// ThreadSanitizer has its own memory at the table's addresses: the names of these tests end in
// NoTsan.
class TrackedRangeNoTsan : public ::testing::Test {
 protected:
  static void open_up(const TrackedRange& range) {
    ASSERT_EQ(0, mprotect(range.data(), range.capacity_bytes(), PROT_READ | PROT_WRITE));
  }
  static std::vector<MarkedPage> taken(TrackedRange& range) {
    std::vector<MarkedPage> out;
    range.take(out);
    std::sort(out.begin(), out.end(),
              [](const MarkedPage& a, const MarkedPage& b) { return a.page < b.page; });
    return out;
  }
};

TEST_F(TrackedRangeNoTsan, MarkedCardsAreTakenOnce) {
  TrackedRange range(kMiB);
  vellum_mark_card(range.data() + 4096 + 130);
  vellum_mark(range.data() + 3 * 4096 - 1, 2);
  EXPECT_FALSE(range.clean());
  const auto pages = taken(range);
  ASSERT_EQ(3U, pages.size());
  EXPECT_EQ(1U, pages[0].page);
  EXPECT_EQ(1ULL << 2, pages[0].cards);
  EXPECT_EQ(2U, pages[1].page);
  EXPECT_EQ(1ULL << 63, pages[1].cards);
  EXPECT_EQ(3U, pages[2].page);
  EXPECT_EQ(1ULL, pages[2].cards);
  EXPECT_TRUE(range.clean());
  EXPECT_TRUE(taken(range).empty());
}

TEST_F(TrackedRangeNoTsan, MarksOfAnyLengthCoverExactlyTheirCards) {
  TrackedRange range(kMiB);
  std::mt19937 random(7);  // NOLINT: the same run each time
  for (int i = 0; i < 2000; ++i) {
    const std::size_t begin = random() % (kMiB - 20000);
    const std::size_t length = i % 3 == 0 ? random() % 200 : random() % 20000;
    vellum_mark(range.data() + begin, length);
    std::set<std::size_t> expected, found;
    if (length > 0)
      for (std::size_t card = begin / 64; card <= (begin + length - 1) / 64; ++card)
        expected.insert(card);
    for (const MarkedPage& page : taken(range))
      for (std::size_t bit = 0; bit < 64; ++bit)
        if ((page.cards >> bit & 1) != 0) found.insert(page.page * std::size_t{64} + bit);
    ASSERT_EQ(expected, found) << begin << " " << length;
  }
}

TEST_F(TrackedRangeNoTsan, ReturnedCardsAreTakenAgain) {
  TrackedRange range(kMiB);
  for (std::size_t at = 0; at < kMiB; at += 3000) vellum_mark(range.data() + at, 100);
  const auto first = taken(range);
  range.put_back(first);
  const auto second = taken(range);
  ASSERT_EQ(first.size(), second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].page, second[i].page);
    EXPECT_EQ(first[i].cards, second[i].cards);
  }
}

TEST_F(TrackedRangeNoTsan, AQueueOfFewPagesWrapsManyTimes) {
  TrackedRange range(3 * 4096);
  for (int round = 0; round < 1000; ++round) {
    vellum_mark(range.data(), 3 * 4096);
    ASSERT_EQ(3U, taken(range).size());
  }
}

TEST_F(TrackedRangeNoTsan, ARangeDoesNotTakeTheMarksOfAnother) {
  TrackedRange one(kMiB), other(5ULL << 30);
  vellum_mark(one.data(), 1);
  vellum_mark(other.data() + (4ULL << 30) + 4096, 1);
  EXPECT_EQ(1U, taken(one).size());
  const auto pages = taken(other);
  ASSERT_EQ(1U, pages.size());
  EXPECT_EQ((4ULL << 30) / 4096 + 1, pages[0].page);
}

TEST_F(TrackedRangeNoTsan, ALaterRangeAtTheSameAddressIsClean) {
  std::byte* address = nullptr;
  {
    TrackedRange range(kMiB);
    address = range.data();
    vellum_mark(range.data(), kMiB);
  }
  TrackedRange range(kMiB, reinterpret_cast<std::uint64_t>(address));
  EXPECT_TRUE(range.clean());
  vellum_mark_card(range.data());
  ASSERT_EQ(1U, taken(range).size());
}

TEST_F(TrackedRangeNoTsan, UsedAndInvalidAddressesAreRefused) {
  TrackedRange range(kMiB);
  const auto code_of = [](std::uint64_t bytes, std::uint64_t address) {
    try {
      TrackedRange another(bytes, address);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc{};
  };
  EXPECT_EQ(Errc::busy, code_of(kMiB, reinterpret_cast<std::uint64_t>(range.data())));
  EXPECT_EQ(Errc::invalid_argument, code_of(kMiB, 0x1000));
  EXPECT_EQ(Errc::invalid_argument, code_of(kMiB, kWindowEnd));
  EXPECT_EQ(Errc::invalid_argument, code_of(100, 0));
  EXPECT_EQ(Errc::invalid_argument, code_of(0, 0));
}

TEST_F(TrackedRangeNoTsan, MarksOutsideOfTheWindowHaveNoEffect) {
  int local = 0;
  vellum_mark(&local, sizeof local);
  vellum_mark(nullptr, 8);
}

// Each writer increments its own words and marks each store; the taker copies the marked lines.
// After a last take the copy must equal the memory: a lost mark makes it differ.
TEST_F(TrackedRangeNoTsan, NoStoreIsLostDuringTake) {
  constexpr std::size_t kBytes = 64 * 4096;
  TrackedRange range(kBytes);
  open_up(range);
  std::vector<std::byte> copy(kBytes);
  std::atomic<bool> stop{false};
  const auto writer = [&](unsigned seed) {
    std::mt19937 random(seed);
    while (!stop.load(std::memory_order_relaxed)) {
      auto* word = reinterpret_cast<std::uint64_t*>(range.data()) + random() % 512 * 2 + seed;
      // This is not fetch_add(), which is a barrier: take() must provide that itself.
      std::atomic_ref<std::uint64_t>(*word).store(*word + 1, std::memory_order_relaxed);
      if (__atomic_load_n(vellum_card_of(reinterpret_cast<std::uint64_t>(word)),
                          __ATOMIC_RELAXED) == 0)
        vellum_mark_card(word);
    }
  };
  std::thread one(writer, 0), two(writer, 1);
  std::vector<MarkedPage> pages;
  const auto take = [&] {
    pages.clear();
    range.take(pages);
    for (const MarkedPage& page : pages)
      for (std::size_t bit = 0; bit < 64; ++bit)
        if ((page.cards >> bit & 1) != 0)
          for (std::size_t word = 0; word < 8; ++word) {
            const std::size_t at = page.page * kPageBytes + bit * 64 + word * 8;
            auto& from = *reinterpret_cast<std::uint64_t*>(range.data() + at);
            const std::uint64_t value = std::atomic_ref(from).load(std::memory_order_relaxed);
            std::memcpy(copy.data() + at, &value, 8);
          }
  };
  for (int i = 0; i < 20000; ++i) take();
  stop = true;
  one.join();
  two.join();
  take();
  EXPECT_EQ(0, std::memcmp(copy.data(), range.data(), kBytes));
}

}  // namespace
}  // namespace vellum::cards
