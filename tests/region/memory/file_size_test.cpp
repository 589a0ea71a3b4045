// The size of the plain file that a region represents.
#include <vellum/cards.h>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class FileSize : public StoreTest {
 protected:
  // Engine mapped has no memory past the end of the file.
  static bool may_touch_all() { return GetParam() != Engine::mapped; }
  static std::uint64_t exported_bytes(const Store& store, const std::string& version,
                                      const std::string& file) {
    store.export_file(version, file);
    const auto bytes = std::filesystem::file_size(file);
    std::filesystem::remove(file);
    return bytes;
  }
};

TEST_P(FileSize, TheFileSizeIsTheRegionsUntilItIsSet) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.commit();
  EXPECT_EQ(region.file_bytes(), kMiB);
  region.grow(2 * kMiB);
  EXPECT_EQ(region.file_bytes(), 2 * kMiB);
  region.commit();
  EXPECT_EQ(store.version("main").file_bytes, 2 * kMiB);
  EXPECT_EQ(region.commit().sequence, 2U) << "nothing to do";
  region.resize_file(2 * kMiB);
  EXPECT_EQ(region.commit().sequence, 3U) << "somebody has said so";
}

TEST_P(FileSize, EachVersionHasItsFileSize) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::memset(region.data(), 5, kMiB);
  region.snapshot("whole");
  region.resize_file(100'001);
  EXPECT_EQ(region.file_bytes(), 100'001U);
  EXPECT_EQ(region.size_bytes(), kMiB);
  EXPECT_EQ(bytes_of(region)[100'000], std::byte{5});
  EXPECT_TRUE(all_zero(bytes_of(region) + 100'001, kMiB - 100'001)) << "at once";
  EXPECT_EQ(store.version("main").file_bytes, kMiB) << "not yet";
  region.snapshot("cut");
  region.resize_file(100'002);
  const auto report = region.commit();
  EXPECT_EQ(report.sequence, 3U) << "a commit, although no page has changed";
  EXPECT_EQ(report.pages_changed, 0U);
  region.resize_file(3 * kMiB + 7);
  EXPECT_EQ(region.size_bytes(), 3 * kMiB + kPage);
  EXPECT_EQ(region.file_bytes(), 3 * kMiB + 7);
  EXPECT_TRUE(all_zero(bytes_of(region) + 100'001, 3 * kMiB - 100'001));
  region.commit();
  region.resize_file(0);
  region.snapshot("empty");
  region.close();
  EXPECT_EQ(store.version("whole").file_bytes, kMiB);
  EXPECT_EQ(store.version("cut").file_bytes, 100'001U);
  EXPECT_EQ(exported_bytes(store, "cut", directory_ / "out"), 100'001U);
  EXPECT_EQ(exported_bytes(store, "empty", directory_ / "out"), 0U);
  EXPECT_EQ(store.open_version("cut", options()).file_bytes(), 100'001U);
  store.create_branch("side", "cut");
  EXPECT_EQ(store.open_region("side", options()).file_bytes(), 100'001U);
  region = store.open_region("main", options());
  EXPECT_EQ(region.file_bytes(), 0U);
  region.zero(region.whole());
  region.prefetch(region.whole());
  if (may_touch_all()) {
    EXPECT_TRUE(all_zero(bytes_of(region), region.size_bytes()));
  }
}

TEST_P(FileSize, TheFileGrowsIntoSpareSpaceOfTheRegion) {
  Store store = create();
  Region region = store.create_region("main", 1, options());
  region.resize_file(10, kMiB);
  EXPECT_EQ(region.size_bytes(), kPage) << "it fits";
  region.resize_file(kMiB, kMiB);
  EXPECT_EQ(region.size_bytes(), 2 * kMiB);
  EXPECT_EQ(region.file_bytes(), kMiB);
  bytes_of(region)[kMiB - 1] = std::byte{1};
  region.snapshot("some");
  region.resize_file(kMiB + 5, kMiB);
  EXPECT_EQ(region.size_bytes(), 2 * kMiB);
  bytes_of(region)[kMiB + 4] = std::byte{2};
  region.commit();
  EXPECT_EQ(exported_bytes(store, "some", directory_ / "out"), kMiB);
  EXPECT_EQ(exported_bytes(store, "main", directory_ / "out"), kMiB + 5);
  region.resize_file(3 * kMiB, UINT64_MAX);
  EXPECT_EQ(region.size_bytes(), region.capacity_bytes());
  EXPECT_EQ(region.file_bytes(), 3 * kMiB);
}

TEST_P(FileSize, RollbackRestoresTheFileSize) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::memset(region.data(), 5, kMiB);
  region.commit();
  region.resize_file(10);
  region.rollback();
  EXPECT_EQ(region.file_bytes(), kMiB);
  EXPECT_EQ(bytes_of(region)[kMiB - 1], std::byte{5});
  EXPECT_EQ(region.commit().sequence, 1U) << "nothing to do";
  region.resize_file(10);
  region.commit();
  region.resize_file(5 * kMiB);
  region.rollback();
  EXPECT_EQ(region.file_bytes(), 10U);
  EXPECT_EQ(region.size_bytes(), kMiB);
}

TEST_P(FileSize, TheFileSizeFollowsGrowthAndStoresPastTheEnd) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.resize_file(10);
  region.commit();
  word_at(region, 64) = 1;
  region.commit();
  EXPECT_EQ(region.file_bytes(), kPage);
  region.resize_file(5 * kPage + 1);
  if (may_touch_all()) region.resize_file(kPage);
  word_at(region, 5 * kPage + 8) = 1;
  auto done = region.commit_async();
  done.get();
  EXPECT_EQ(store.version("main").file_bytes, 6 * kPage);
  EXPECT_EQ(exported_bytes(store, "main", directory_ / "out"), 6 * kPage);
  word_at(region, 0) = 1;
  region.commit();
  EXPECT_EQ(store.version("main").file_bytes, 6 * kPage) << "not behind it";
  region.grow(2 * kMiB);
  EXPECT_EQ(region.file_bytes(), 2 * kMiB);
  region.resize_file(7);
  word_at(region, 8) = 3;
  region.resize_file(4);
  EXPECT_EQ(word_at(region, 8), 0U) << "what was stored behind it has gone, too";
  region.commit();
  EXPECT_EQ(store.version("main").file_bytes, 4U);
}

TEST_P(FileSize, InvalidResizesAreRefused) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  expect_error(Errc::invalid_argument, {"main"},
               [&] { region.resize_file(region.capacity_bytes() + 1); });
  EXPECT_EQ(region.file_bytes(), kMiB);
  region.snapshot("s");
  Region old = store.open_version("s", options());
  expect_error(Errc::read_only, {"s"}, [&] { old.resize_file(5); });
  EXPECT_EQ(Region().file_bytes(), 0U);
}

VELLUM_BOTH_ENGINES(FileSize);

class FileSizeWithCardsNoTsan : public StoreTest {};

TEST_P(FileSizeWithCardsNoTsan, ShrinkingIsFoundWithoutMarks) {
  Store store = create();
  RegionOptions with_cards = options();
  with_cards.tracker = Tracker::cards;
  Region region = store.create_region("main", kMiB, with_cards);
  std::memset(region.data(), 5, kMiB);
  vellum_mark(region.data(), kMiB);
  region.commit();
  region.resize_file(kPage);
  EXPECT_EQ(region.commit().pages_changed, 255U);
  const auto content = content_of(store, "main");
  EXPECT_TRUE(all_zero(content.data() + kPage, kMiB - kPage));
}

VELLUM_BOTH_ENGINES(FileSizeWithCardsNoTsan);

}  // namespace
}  // namespace vellum::test
