// grow(): new bytes are zero, and durable with the next commit.
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Grow : public StoreTest {};

TEST_P(Grow, RegionsGrowInStepsOfAnySize) {
  Store store = create();
  std::uint64_t pages = 1;
  {
    Region region = store.create_region("main", kPage, options());
    void* const data = region.data();
    for (const std::uint64_t step : {1U, 2U, 14U, 15U, 16U, 300U, 511U, 1U}) {
      std::memset(bytes_of(region) + (pages - 1) * kPage, 5, kPage);
      region.grow((pages + step) * kPage);
      EXPECT_EQ(region.data(), data);
      EXPECT_EQ(region.size_bytes(), (pages + step) * kPage);
      EXPECT_TRUE(all_zero(bytes_of(region) + pages * kPage, step * kPage)) << step;
      pages += step;
      bytes_of(region)[pages * kPage - 1] = std::byte{6};
      region.commit();
      EXPECT_EQ(store.version("main").region_bytes, pages * kPage);
    }
  }
  Region region = store.open_region("main", options());
  EXPECT_EQ(region.size_bytes(), pages * kPage);
  EXPECT_EQ(bytes_of(region)[0], std::byte{5});
  EXPECT_EQ(bytes_of(region)[pages * kPage - 1], std::byte{6});
}

TEST_P(Grow, GrowthWithoutStoresIsACommit) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    region.commit();
    region.grow(3 * kMiB);
    EXPECT_EQ(region.commit().sequence, 2u);
  }
  Region region = store.open_region("main", options());
  EXPECT_EQ(region.size_bytes(), 3 * kMiB);
  EXPECT_TRUE(all_zero(bytes_of(region), 3 * kMiB));
}

TEST_P(Grow, UncommittedGrowthIsLost) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    region.commit();
    region.grow(3 * kMiB);
    word_at(region, 2 * kMiB) = 1;
  }
  EXPECT_EQ(store.open_region("main", options()).size_bytes(), kMiB);
}

TEST_P(Grow, ASnapshotKeepsItsSize) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.snapshot("small");
  region.grow(2 * kMiB);
  word_at(region, 2 * kMiB - 8) = 1;
  region.snapshot("large");
  EXPECT_EQ(store.open_version("small", options()).size_bytes(), kMiB);
  Region large = store.open_version("large", options());
  EXPECT_EQ(large.size_bytes(), 2 * kMiB);
  EXPECT_EQ(word_at(large, 2 * kMiB - 8), 1u);
}

TEST_P(Grow, InvalidSizesAreRefused) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  EXPECT_GE(region.capacity_bytes(), 256 * kMiB);
  expect_error(Errc::invalid_argument, {"main", "capacity"},
               [&] { region.grow(region.capacity_bytes() + 1); });
  expect_error(Errc::invalid_argument, {"main"}, [&] { region.grow(~std::uint64_t{0}); });
  expect_error(Errc::invalid_argument, {"main", "shrink"}, [&] { region.grow(kMiB - kPage); });
  region.grow(kMiB);  // nothing to do
  region.grow(region.capacity_bytes());
  EXPECT_EQ(region.size_bytes(), region.capacity_bytes());
  word_at(region, region.size_bytes() - 8) = 1;
  region.commit();
}

VELLUM_BOTH_ENGINES(Grow);

}  // namespace
}  // namespace vellum::test
