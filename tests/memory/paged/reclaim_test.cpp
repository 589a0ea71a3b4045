// Private copies that equal their base copies go back, and no write is lost meanwhile.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "memory/memory_fixture.hpp"
#include "support/eager_reclaim.hpp"

namespace vellum::region::test {
namespace {

using namespace std::chrono_literals;

class Reclaim : public MemoryTest {
 protected:
  static constexpr std::uint64_t kPages = 8192;  // 32 MiB: more than what is left alone

  // Under a limit of which the region takes enough.
  std::unique_ptr<RegionMemory> make(std::uint64_t size_bytes, std::uint64_t limit_times = 8) {
    MemoryOptions options;
    options.size_bytes = options.capacity_bytes = size_bytes;
    options.writable = true;
    options.memory_limit_bytes = limit_times * size_bytes;
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
  // Waits until `done`, without an end: the test's own limit ends it.
  static void wait_until(const std::function<bool()>& done) {
    while (!done()) std::this_thread::sleep_for(5ms);
  }
  static bool holds(RegionMemory& memory, int value) {
    for (PageNumber page = 0; page < kPages; ++page) {
      const auto wanted = static_cast<std::byte>(static_cast<PageNumber>(value) + page % 7);
      if (page_at(memory, page)[page % kPageBytes] != wanted) return false;
    }
    return true;
  }
};

TEST_P(Reclaim, PagesAtRestAreHeldOnce) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  wait_until([&] { return pages_held(*memory) <= kPages + kPages / 8; });
  EXPECT_TRUE(holds(*memory, 1));
  EXPECT_TRUE(collect(*memory).empty()) << "giving back is no write";
}

// Another tracker has found what was written: nothing is armed, and comparing alone tells.
TEST_P(Reclaim, PagesAtRestAreHeldOnceWhereAnotherTrackerFindsThem) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  fill(*memory, 2);
  const std::vector<PageNumber> stored{0, 1};
  std::vector<PageNumber> dirty;
  memory->collect_dirty(dirty, &stored);
  for (const PageNumber page : dirty)
    ASSERT_EQ(memory->backing().write(page, {page_at(*memory, page), kPageBytes}), 0);
  std::this_thread::sleep_for(900ms);
  EXPECT_TRUE(holds(*memory, 2)) << "what the tracker has not found yet stays";
}

TEST_P(Reclaim, PagesThatWentBackAreWrittenAgain) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  wait_until([&] { return pages_held(*memory) <= kPages + kPages / 8; });
  fill(*memory, 2);
  EXPECT_EQ(collect(*memory).size(), kPages);
  EXPECT_TRUE(holds(*memory, 2));
}

// What no commit has seen stays, whatever it was before.
TEST_P(Reclaim, PagesWrittenSinceTheLastCommitStay) {
  const auto memory = make(kPages * kPageBytes);
  fill(*memory, 1);
  commit(*memory);
  for (PageNumber page = 0; page < kPages; page += 3) page_at(*memory, page)[0] = std::byte{99};
  std::this_thread::sleep_for(900ms);
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
  std::this_thread::sleep_for(900ms);
  EXPECT_GE(pages_held(*memory), 2 * kPages - 1024);
  memory->release(0, kPages);
}

// Writers beside passes and commits: each counts up its own words; no count is ever lost. Passes
// follow each commit at once, so writers meet pages that are closed for the moment. NoTsan: the
// fixture's commit reads pages while they are written.
TEST_P(Reclaim, NoWriteIsLostBesideIt_NoTsan) {
  constexpr std::size_t kThreads = 3;
  const vellum::test::EagerReclaim eager;
  const auto memory = make(kPages * kPageBytes);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> wrong{0}, rounds{0};
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t round = 1; !stop; ++round) {
        for (PageNumber page = t; page < kPages; page += kThreads) {
          auto* const word = reinterpret_cast<std::uint64_t*>(page_at(*memory, page)) + 1 + t;
          if (*word != round - 1) ++wrong;
          *word = round;
          if (page % 64 == t) std::this_thread::sleep_for(1ms);
        }
        ++rounds;
      }
    });
  }
  const auto end = std::chrono::steady_clock::now() + 2s;
  while (std::chrono::steady_clock::now() < end) {
    commit(*memory);
    std::this_thread::sleep_for(5ms);
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(rounds, kThreads);
}

VELLUM_PAGED_ENGINES(Reclaim);

// Pages that a fault brought in beside those that were written, and that are zero still.
class ReclaimZeros : public Reclaim {};

// The limit is so low that a pass which the commit has cut short is followed by another.
TEST_P(ReclaimZeros, GoBackAtACommit) {
  const auto memory = make(8 * kPages * kPageBytes, 2);
  // Two pages far apart make a chunk come in whole.
  for (PageNumber page = 0; page < 8 * kPages; page += kChunkPages / 2) {
    page_at(*memory, page)[1] = std::byte{1};
  }
  ASSERT_EQ(pages_held(*memory), 8 * kPages) << "nothing to give back";
  commit(*memory);
  // Of each chunk, two pages are left, perhaps twice; and what a pass leaves alone.
  wait_until([&] { return pages_held(*memory) <= 2 * 2 * 8 * kPages / kChunkPages + 512; });
  for (PageNumber page = 0; page < 8 * kPages; ++page) {
    ASSERT_EQ(page_at(*memory, page)[1], std::byte(page % (kChunkPages / 2) == 0 ? 1 : 0)) << page;
  }
}

VELLUM_PARTIAL_FILL_ENGINES(ReclaimZeros);

}  // namespace
}  // namespace vellum::region::test
