// Private copies that equal their base copies are dropped without losing a concurrent write. The
// tests own the clock and run the steps of the reclaimer, so no test sleeps.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "memory/memory_fixture.hpp"
#include "memory/paged/paged_memory.hpp"
#include "support/eager_reclaim.hpp"

namespace vellum::region::test {
namespace {

using namespace std::chrono_literals;

class Reclaim : public MemoryTest {
 protected:
  static constexpr std::uint64_t kPages = 8192;  // 32 MiB: more than few_pages
  static constexpr std::uint64_t kFewPages = 1024;

  // Under a memory limit; the region has a sufficient share of it.
  std::unique_ptr<RegionMemory> make(std::uint64_t size_bytes, std::uint64_t limit_times = 8,
                                     const ReclaimPolicy& policy = {}) {
    MemoryOptions options;
    options.size_bytes = options.capacity_bytes = size_bytes;
    options.writable = true;
    options.memory_limit_bytes = limit_times * size_bytes;
    options.reclaim_policy = policy;
    options.reclaim_clock = [this] { return std::chrono::steady_clock::time_point(now_); };
    return make_region_memory(GetParam(), options, nullptr);
  }
  static void fill(RegionMemory& memory, int value) {
    for (PageNumber page = 0; page < kPages; ++page) {
      page_at(memory, page)[page % kPageBytes] =
          static_cast<std::byte>(static_cast<PageNumber>(value) + page % 7);
    }
  }
  static std::uint64_t pages_held(RegionMemory& memory) {
    return memory.use().resident_bytes / kPageBytes;
  }
  static bool holds(RegionMemory& memory, int value) {
    for (PageNumber page = 0; page < kPages; ++page) {
      const auto wanted = static_cast<std::byte>(static_cast<PageNumber>(value) + page % 7);
      if (page_at(memory, page)[page % kPageBytes] != wanted) return false;
    }
    return true;
  }

  // Runs steps for `duration` of the clock, or until no step is due before the next commit. Returns
  // whether none was due.
  bool run_reclaimer(RegionMemory& memory, std::chrono::milliseconds duration = 1h) {
    const auto end = now_ + duration;
    while (now_ < end) {
      const auto pause = static_cast<PagedMemory&>(memory).reclaimer().step();
      if (!pause) return true;
      now_ += std::max<std::chrono::milliseconds>(*pause, 1ms);
    }
    return false;
  }

  std::chrono::milliseconds now_{1h};
};

TEST_P(Reclaim, IdlePagesAreInMemoryOnce) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  EXPECT_TRUE(run_reclaimer(*memory));
  EXPECT_LE(pages_held(*memory), kPages + kFewPages / 2);
  EXPECT_TRUE(holds(*memory, 1));
  EXPECT_TRUE(collect(*memory).empty()) << "dropping a page made it dirty";
}

TEST_P(Reclaim, PagesOfTheLastCommitStayUntilCommitsPause) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  EXPECT_FALSE(run_reclaimer(*memory, 480ms));
  EXPECT_EQ(pages_held(*memory), 2 * kPages);
  EXPECT_TRUE(run_reclaimer(*memory, 100ms));
  EXPECT_LE(pages_held(*memory), kPages + kFewPages / 2);
}

// Another tracker has found the dirty pages: no page is armed, and only the comparison decides.
TEST_P(Reclaim, PagesThatTheOtherTrackerMissedStay) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  fill(*memory, 2);
  const std::vector<PageNumber> stored{0, 1};
  std::vector<PageNumber> dirty;
  memory->collect_dirty(dirty, &stored);
  for (const PageNumber page : dirty)
    ASSERT_EQ(memory->backing().write(page, {page_at(*memory, page), kPageBytes}), 0);
  EXPECT_TRUE(run_reclaimer(*memory));
  EXPECT_TRUE(holds(*memory, 2));
}

TEST_P(Reclaim, DroppedPagesCanBeWrittenAgain) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  EXPECT_TRUE(run_reclaimer(*memory));
  ASSERT_LE(pages_held(*memory), kPages + kFewPages / 2);
  fill(*memory, 2);
  EXPECT_EQ(collect(*memory).size(), kPages);
  EXPECT_TRUE(holds(*memory, 2));
}

// Pages that no commit has found stay, regardless of their earlier content.
TEST_P(Reclaim, PagesWrittenSinceTheLastCommitStay) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  for (PageNumber page = 0; page < kPages; page += 3) page_at(*memory, page)[0] = std::byte{99};
  EXPECT_TRUE(run_reclaimer(*memory));
  for (PageNumber page = 0; page < kPages; page += 3) {
    ASSERT_EQ(page_at(*memory, page)[0], std::byte{99}) << page;
  }
  const auto dirty = collect(*memory);
  for (PageNumber page = 0; page < kPages; page += 3) EXPECT_TRUE(contains(dirty, page)) << page;
}

TEST_P(Reclaim, HeldChunksStay) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  memory->hold(0, kPages);
  commit(*memory);
  EXPECT_TRUE(run_reclaimer(*memory));
  EXPECT_GE(pages_held(*memory), 2 * kPages - kFewPages);
  memory->release(0, kPages);
}

// Writers concurrent with passes and commits: each increments its own words; no increment is lost.
// A pass follows each commit immediately, so writers access pages that a pass has protected.
// NoTsan: the fixture's commit reads pages while they are written.
TEST_P(Reclaim, NoWriteIsLost_NoTsan) {
  constexpr std::size_t kThreads = 3;
  constexpr std::uint64_t kRounds = 8;
  const auto memory = make(kPages * kPageBytes, 8, vellum::test::eager_reclaim_policy());
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::size_t> running{kThreads};
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t round = 1; round <= kRounds; ++round) {
        for (PageNumber page = t; page < kPages; page += kThreads) {
          auto* const word = reinterpret_cast<std::uint64_t*>(page_at(*memory, page)) + 1 + t;
          if (*word != round - 1) ++wrong;
          *word = round;
          if (page % 64 == t) std::this_thread::yield();
        }
      }
      --running;
    });
  }
  do {
    commit(*memory);
    EXPECT_TRUE(run_reclaimer(*memory));
  } while (running != 0);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
}

VELLUM_PAGED_ENGINES(Reclaim);

// Pages that a fault has filled together with written ones, and that are still zero.
class ReclaimZeros : public Reclaim {};

TEST_P(ReclaimZeros, ZeroPagesAreDropped) {
  const auto memory = make(8 * kPages * kPageBytes, 2);
  // Two pages far apart make a fault fill the whole chunk.
  for (PageNumber page = 0; page < 8 * kPages; page += kChunkPages / 2) {
    page_at(*memory, page)[1] = std::byte{1};
  }
  ASSERT_EQ(pages_held(*memory), 8 * kPages) << "no zero page to drop";
  commit(*memory);
  EXPECT_TRUE(run_reclaimer(*memory));
  // Two pages of each chunk remain, perhaps with base copies, and the few pages that a pass keeps.
  EXPECT_LE(pages_held(*memory), 2 * 2 * 8 * kPages / kChunkPages + kFewPages / 2);
  for (PageNumber page = 0; page < 8 * kPages; ++page) {
    ASSERT_EQ(page_at(*memory, page)[1], std::byte(page % (kChunkPages / 2) == 0 ? 1 : 0)) << page;
  }
}

VELLUM_PARTIAL_FILL_ENGINES(ReclaimZeros);

}  // namespace
}  // namespace vellum::region::test
