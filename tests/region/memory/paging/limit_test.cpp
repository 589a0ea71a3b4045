// The memory limit during commits: while a commit keeps its dirty pages, threads that continue to
// write wait for memory, and do not use it without bound.
#include <atomic>
#include <thread>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class LimitOfWriters : public StoreTest {};

TEST_P(LimitOfWriters, WritersStayWithinTheLimitDuringCommits) {
  if (GetParam() == Engine::mapped) GTEST_SKIP() << "its pages are the kernel's";
  constexpr std::uint64_t kLimit = 16 * kMiB, kRegion = 4 * kLimit, kWords = kRegion / 8;
  RegionOptions limited = options();
  limited.memory_limit_bytes = kLimit;
  Store store = create();
  Region region = store.create_region("main", kRegion, limited);
  auto* const words = region.array<std::uint64_t>(kWords);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> writes{0};
  std::vector<std::thread> writers;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    writers.emplace_back([&, x = seed]() mutable {
      while (!stop) {
        x = x * 6364136223846793005U + 1442695040888963407U;
        std::atomic_ref(words[(x >> 33) % kWords]).store(x, std::memory_order_relaxed);
        writes.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  std::uint64_t most = 0;
  for (int round = 0; round < 4; ++round) {
    const std::uint64_t before = writes;
    while (writes < before + 1500) {
      most = std::max(most, region.memory_use().resident_bytes);
      std::this_thread::yield();
    }
    if (round % 2 == 0) {
      region.commit();
    } else {
      auto end = region.commit_async();
      while (end.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        most = std::max(most, region.memory_use().resident_bytes);
      }
      end.get();
    }
    most = std::max(most, region.memory_use().resident_bytes);
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  // A commit holds its dirty pages twice, and first writes are counted with a delay.
  EXPECT_LE(most, 5 * kLimit / 2);
  EXPECT_GT(region.memory_use().evicted_bytes, 0u);
}

VELLUM_BOTH_ENGINES(LimitOfWriters);

}  // namespace
}  // namespace vellum::test
