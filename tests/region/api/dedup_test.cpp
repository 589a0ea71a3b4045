// Pages that the store holds already are not stored again, and the pages that they refer to stay.
#include <gtest/gtest.h>

#include <random>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kBlobBytes = 4 * kMiB;

class DedupTest : public StoreTest {
 protected:
  // Bytes that no codec makes smaller.
  static void fill(const Region& region, std::uint64_t offset_bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; at < kBlobBytes; at += 8) {
      word_at(region, offset_bytes + at) = random();
    }
  }
  static bool holds(const Region& region, std::uint64_t offset_bytes, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; at < kBlobBytes; at += 8) {
      if (word_at(region, offset_bytes + at) != random()) return false;
    }
    return true;
  }
  Region region(Store& store, const std::string& branch = "main") const {
    return store.open_or_create_region(branch, 2 * kBlobBytes, options());
  }
  // Leaves snapshots "once" and "twice", and the region closed.
  static void expect_a_copy_costs_nothing(Region& main) {
    fill(main, 0, 1);
    main.snapshot("once");
    std::memcpy(bytes_of(main) + kBlobBytes, bytes_of(main), kBlobBytes);
    const auto report = main.snapshot("twice");
    EXPECT_LT(report.bytes_written, kBlobBytes / 8);
    main.close();
  }
  static void expect_whole(const Store& store) {
    const auto report = store.verify({.read_data = true});
    for (const auto& damage : report.damages) ADD_FAILURE() << damage.object << damage.reason;
  }
};

TEST_P(DedupTest, ACopyInTheRegionCostsNoBytes) {
  Store store = create();
  Region main = region(store);
  expect_a_copy_costs_nothing(main);
  const Region twice = store.open_version("twice", options());
  EXPECT_TRUE(holds(twice, 0, 1));
  EXPECT_TRUE(holds(twice, kBlobBytes, 1));
  expect_whole(store);
}

// The writer's first pack exists already when it searches earlier writers' pages: it must know
// that pack as its own.
TEST_P(DedupTest, ACopyAfterASmallCommitCostsNoBytesEither) {
  Store store = create();
  Region main = region(store);
  word_at(main, 0) = 1;
  main.snapshot("small");
  expect_a_copy_costs_nothing(main);
  EXPECT_TRUE(holds(store.open_version("twice", options()), kBlobBytes, 1));
  expect_whole(store);
}

TEST_P(DedupTest, PagesOfAnEarlierWriterAreFound) {
  Store store = create();
  {
    Region main = region(store);
    fill(main, 0, 1);
    main.snapshot("a");
    fill(main, 0, 2);
    main.snapshot("b");
  }
  Region main = region(store);
  fill(main, 0, 1);  // the earlier content
  EXPECT_LT(main.commit().bytes_written, kBlobBytes / 8);
  Region side = region(store, "side");
  fill(side, kBlobBytes, 2);  // another branch, another place
  EXPECT_LT(side.commit().bytes_written, kBlobBytes / 8);
  main.close();
  side.close();
  EXPECT_TRUE(holds(region(store), 0, 1));
  EXPECT_TRUE(holds(region(store, "side"), kBlobBytes, 2));
  expect_whole(store);
}

TEST_P(DedupTest, PagesOfOtherContentBetweenAreStored) {
  Store store = create();
  Region main = region(store);
  fill(main, 0, 1);
  main.snapshot("a");
  std::memcpy(bytes_of(main) + kBlobBytes, bytes_of(main), kBlobBytes);
  for (std::uint64_t at = kBlobBytes; at < 2 * kBlobBytes; at += 7 * kPage) word_at(main, at) = at;
  const auto want = content_of(main);
  main.snapshot("b");
  main.close();
  EXPECT_EQ(content_of(store, "b"), want);
  expect_whole(store);
}

TEST_P(DedupTest, WithoutDedupNoPageIsAReference) {
  StoreOptions plain;
  plain.encoding.dedup = false;
  Store store = create(plain);
  Region main = region(store);
  fill(main, 0, 1);
  main.snapshot("once");
  std::memcpy(bytes_of(main) + kBlobBytes, bytes_of(main), kBlobBytes);
  EXPECT_GT(main.snapshot("twice").bytes_written, kBlobBytes);
}

TEST_P(DedupTest, ABranchHasItsOwnSetting) {
  Store store = create();
  RegionOptions own = options();
  own.encoding = store.options().encoding;
  own.encoding->dedup = false;
  Region main = store.create_region("main", 2 * kBlobBytes, own);
  fill(main, 0, 1);
  main.commit();
  fill(main, kBlobBytes, 1);
  EXPECT_GT(main.commit().bytes_written, kBlobBytes);
}

TEST_P(DedupTest, ReferredPagesSurviveTheirSnapshot) {
  Store store = create();
  Region main = region(store);
  fill(main, 0, 1);
  main.snapshot("a");
  main.snapshot("b");  // the checkpoint before the last is what a power cut cannot take back
  Region side = region(store, "side");
  fill(side, 0, 1);
  EXPECT_LT(side.commit().bytes_written, kBlobBytes / 8);
  fill(main, 0, 2);
  main.commit();
  main.close();
  side.close();
  store.remove_snapshot("a");
  store.remove_snapshot("b");
  store.remove_branch("main");
  store.collect_garbage();
  EXPECT_TRUE(holds(region(store, "side"), 0, 1));
  expect_whole(store);
}

// Pages that gc has freed may still be in a cache, and in the index of pages.
TEST_P(DedupTest, FreedPagesAreNotReferredTo) {
  Store store = create();
  Region main = region(store);
  fill(main, 0, 1);
  main.snapshot("a");
  EXPECT_TRUE(holds(store.open_version("a", options()), 0, 1));
  for (std::uint64_t seed = 2; seed < 5; ++seed) {  // the checkpoint before the last counts, too
    fill(main, 0, seed);
    main.snapshot("b" + std::to_string(seed));
  }
  store.remove_snapshot("a");
  Store::open(path()).collect_garbage();
  main.close();
  Store::open(path()).collect_garbage();
  Region again = region(store);
  fill(again, 0, 1);
  again.commit();
  again.close();
  EXPECT_TRUE(holds(region(store), 0, 1));
  EXPECT_TRUE(holds(store.open_version("main", options()), 0, 1));
  expect_whole(store);
}

TEST_P(DedupTest, AFailedCommitLeavesNothingToReferTo) {
  Store store = create();
  Region main = region(store);
  fill(main, 0, 1);
  main.rollback();
  fill(main, 0, 1);
  fill(main, kBlobBytes, 1);  // within one commit
  main.commit();
  main.close();
  Region back = region(store);
  EXPECT_TRUE(holds(back, 0, 1));
  EXPECT_TRUE(holds(back, kBlobBytes, 1));
  expect_whole(store);
}

VELLUM_BOTH_ENGINES(DedupTest);

}  // namespace
}  // namespace vellum::test
