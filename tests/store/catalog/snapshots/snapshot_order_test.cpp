// The order of snapshots: each number is assigned once, to any caller, including after a power cut.
#include "store/catalog/snapshots/snapshot_order.hpp"

#include <algorithm>
#include <set>
#include <thread>

#include "store/support.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

TEST(SnapshotOrder, ConcurrentCallersGetDifferentNumbers) {
  vellum::test::MemoryFs fs;
  StoreDirectory::create(fs, "/s", small_options());
  constexpr std::size_t kThreads = 4, kClaims = 50;
  std::vector<std::vector<std::uint64_t>> claimed(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : claimed) {
    threads.emplace_back([&fs, &mine] {
      const auto store = StoreDirectory::open(fs, "/s");
      while (mine.size() < kClaims) mine.push_back(claim_snapshot_order(*store));
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : claimed) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), kThreads * kClaims);
  EXPECT_EQ(*all.rbegin(), kThreads * kClaims);
}

TEST(SnapshotOrder, APowerCutReassignsNoNumber) {
  std::mt19937_64 random(1);
  auto fs = std::make_unique<sim::SimFs>();
  fs->start_log();
  StoreDirectory::create(*fs, "/s", small_options());
  std::uint64_t last = 0;
  for (int cut = 0; cut < 200; ++cut) {
    fs->cut_power_at(1 + random() % 12);
    try {
      for (;;) {
        const std::uint64_t order = claim_snapshot_order(*StoreDirectory::open(*fs, "/s"));
        ASSERT_GT(order, last);
        last = order;
      }
    } catch (const sim::PowerCut&) {
    }
    fs = sim::next_boot(*fs, random);
  }
}

TEST(SnapshotOrder, NumbersEndBeforeTheyWouldWrap) {
  vellum::test::MemoryFs fs;
  const auto store = StoreDirectory::create(fs, "/s", small_options());
  const auto& id = store->superblock().store_id;
  fs.write_file("/s/snapshots.order",
                format::encode_snapshot_order(format::kMaxSnapshotOrder - 1, id));
  EXPECT_EQ(claim_snapshot_order(*store), format::kMaxSnapshotOrder);
  EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { claim_snapshot_order(*store); }),
                       "/s/snapshots.order"));
}

}  // namespace
}  // namespace vellum::store::test
