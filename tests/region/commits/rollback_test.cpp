// rollback() restores the last commit in memory, at the cost of the dirty pages.
#include <chrono>

#include "support/paging.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Rollback : public StoreTest {};

TEST_P(Rollback, RollbackDiscardsStoresSinceTheLastCommit) {
  Store store = create();
  Region region = store.create_region("main", 4 * kMiB, options());
  std::memset(bytes_of(region), 1, kMiB);
  region.commit();
  const auto expected = content_of(region);
  for (int round = 0; round < 3; ++round) {
    std::memset(bytes_of(region) + kMiB / 2, 2, kMiB);  // over both written and zero pages
    word_at(region, 4 * kMiB - 8) = 7;
    region.rollback();
    EXPECT_EQ(content_of(region), expected);
    EXPECT_EQ(region.commit().pages_changed, 0u);
  }
  word_at(region, 0) = 9;
  region.commit();
  region.close();
  Region again = store.open_region("main", options());
  EXPECT_EQ(word_at(again, 0), 9u);
  EXPECT_TRUE(std::equal(expected.begin() + 8, expected.end(), bytes_of(again) + 8));
}

TEST_P(Rollback, RollbackBeforeTheFirstCommitGivesZeros) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::memset(region.data(), 1, kMiB);
  region.rollback();
  EXPECT_TRUE(all_zero(bytes_of(region), kMiB));
}

TEST_P(Rollback, RollbackAfterReopeningRestoresTheLastCommit) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    std::memset(region.data(), 1, kMiB);
    region.commit();
  }
  Region region = store.open_region("main", options());
  std::memset(bytes_of(region) + 5000, 2, kMiB / 2);
  region.rollback();
  EXPECT_EQ(content_of(region), std::vector<std::byte>(kMiB, std::byte{1}));
}

TEST_P(Rollback, RollbackUndoesGrowth) {
  Store store = create();
  for (const std::uint64_t pages : {1U, 3U, 20U, 256U, 700U}) {
    const std::string name = "r" + std::to_string(pages);
    Region region = store.create_region(name, pages * kPage, options());
    std::memset(region.data(), 1, pages * kPage);
    region.commit();
    for (const std::uint64_t more : {1U, 7U, 300U, 1000U}) {
      region.grow((pages + more) * kPage);
      std::memset(region.data(), 2, (pages + more) * kPage);
      region.rollback();
      EXPECT_EQ(region.size_bytes(), pages * kPage);
      EXPECT_EQ(content_of(region), std::vector<std::byte>(pages * kPage, std::byte{1}));
      region.grow((pages + more) * kPage);
      EXPECT_TRUE(all_zero(bytes_of(region) + pages * kPage, more * kPage)) << pages << "+" << more;
      region.rollback();
    }
    EXPECT_EQ(region.commit().pages_changed, 0u);
  }
}

TEST_P(Rollback, RollbackCostsTheDirtyPages) {
  RegionOptions large = options();
  large.capacity_bytes = 0;
  Store store = create();
  Region region = store.create_region("main", 8ULL << 30, large);
  region.prefetch({0, 512 * kMiB});
  region.commit();
  const auto start = vellum::test::processor_time();
  constexpr int kRounds = 50;
  for (int i = 0; i < kRounds; ++i) {
    word_at(region, static_cast<std::uint64_t>(i) * 8 * kMiB) = 1;
    region.rollback();
  }
  const auto each = (vellum::test::processor_time() - start) / kRounds;
  // 512 MiB copied or compared would take 50 ms at the least.
  EXPECT_LT(each, std::chrono::milliseconds(10));
}

VELLUM_BOTH_ENGINES(Rollback);

}  // namespace
}  // namespace vellum::test
