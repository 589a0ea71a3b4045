// A full disk is an error of commit(), and nothing else.
#include <random>

#include "support/disk/small_disk.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class FullDisk : public StoreTest {
 protected:
  static void randomise(const Region& region, std::uint64_t from, std::uint64_t to,
                        std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::uint64_t i = from; i < to; i += 8) word_at(region, i) = random();
  }
  // The image is on another disk: it would occupy the space that is counted here, and a full tmpfs
  // cannot even read a file's holes.
  RegionOptions options() const {
    RegionOptions options = StoreTest::options();
    if (GetParam() == Engine::mapped) options.image.path = directory_ / "image";
    return options;
  }
  // A new store, and a region whose first bytes, nothing committed yet, are random.
  struct Begun {
    Store store;
    Region region;
  };
  Begun begin(const SmallDisk& disk, const StoreOptions& store_options, std::uint64_t region_bytes,
              std::uint64_t random_bytes) const {
    std::filesystem::remove(directory_ / "image");
    Store store = Store::create(disk / "store", store_options);
    Region region = store.create_region("main", region_bytes, options());
    randomise(region, 0, random_bytes, 1);
    return {std::move(store), std::move(region)};
  }
  static StoreOptions plain() {
    StoreOptions options;
    options.encoding.compression = Encoding::Compression::none;
    options.pack_bytes = 4u << 20;
    return options;
  }
};

#define VELLUM_NEEDS(disk) \
  if (!(disk).mounted()) GTEST_SKIP() << (disk).reason()

TEST_P(FullDisk, AFullDiskKeepsTheLastCommitAndTheRegion) {
  const SmallDisk disk(40 * kMiB);
  VELLUM_NEEDS(disk);
  auto [store, region] = begin(disk, plain(), 16 * kMiB, 4 * kMiB);
  region.snapshot("good");
  const auto good = content_of(region);

  disk.fill(2 * kMiB);
  randomise(region, 2 * kMiB, 10 * kMiB, 2);
  word_at(region, 15 * kMiB) = 3;
  const auto wanted = content_of(region);
  for (int attempt = 0; attempt < 3; ++attempt) {
    expect_error(Errc::no_space, {disk / "store"}, [&] { region.commit(); });
    EXPECT_EQ(region.sequence(), 1u);
    EXPECT_EQ(content_of(region), wanted) << "memory is as it was";
    EXPECT_EQ(content_of(store, "main"), good);
    EXPECT_EQ(content_of(Store::open(disk / "store"), "good"), good);
  }
  disk.make_room();
  word_at(region, 15 * kMiB + 8) = 4;
  region.commit();
  auto expected = wanted;
  std::memcpy(expected.data() + 15 * kMiB + 8, "\4\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(content_of(store, "main"), expected);
  region.close();
  Store again = Store::open(disk / "store");
  EXPECT_EQ(content_of(again.open_region("main", options())), expected);
  EXPECT_EQ(content_of(again.open_version("good", options())), good);
  EXPECT_TRUE(again.verify({.read_data = true}).damages.empty());
}

TEST_P(FullDisk, RollbackOnAFullDiskRestoresTheLastCommit) {
  const SmallDisk disk(24 * kMiB);
  VELLUM_NEEDS(disk);
  auto [store, region] = begin(disk, plain(), 16 * kMiB, 6 * kMiB);
  for (std::uint64_t page = 1600; page < 2000; ++page) word_at(region, page * kPage) = page;
  region.commit();
  const auto good = content_of(region);
  disk.fill(kMiB);
  randomise(region, 0, kMiB, 2);
  std::memset(bytes_of(region) + 2 * kMiB, 0, kMiB);
  for (std::uint64_t page = 1600; page < 2000; ++page) word_at(region, page * kPage + 80) = page;
  region.grow(20 * kMiB);
  randomise(region, 12 * kMiB, 18 * kMiB, 3);
  EXPECT_ERRC(region.commit(), Errc::no_space);
  region.rollback();
  EXPECT_EQ(region.size_bytes(), 16 * kMiB);
  EXPECT_EQ(content_of(region), good);
  EXPECT_EQ(region.commit().pages_changed, 0u);
  // Small commits still fit.
  word_at(region, 8) += 1;
  region.commit();
  EXPECT_EQ(content_of(store, "main"), content_of(region));
  region.close();
  EXPECT_EQ(word_at(store.open_region("main", options()), 1600 * kPage), 1600u);
}

// This is more than the encoder keeps in memory to undo a commit; it reads the rest from the store.
TEST_P(FullDisk, AHugeFailedCommitIsUndone) {
  const SmallDisk disk(120 * kMiB);
  VELLUM_NEEDS(disk);
  auto [store, region] = begin(disk, plain(), 80 * kMiB, 80 * kMiB);
  region.commit();
  word_at(region, 70 * kMiB) = 5;  // in the journal, over the pack's page
  region.commit();
  const auto good = content_of(region);
  randomise(region, 0, 80 * kMiB, 2);
  EXPECT_ERRC(region.commit(), Errc::no_space);
  for (std::uint64_t page = 0; page < 20480; page += 7) word_at(region, page * kPage) = page;
  EXPECT_ERRC(region.commit(), Errc::no_space);
  region.rollback();
  EXPECT_TRUE(content_of(region) == good);
  word_at(region, 79 * kMiB) = 6;
  EXPECT_EQ(region.commit().pages_changed, 1u);
  const auto expected = content_of(region);
  region.close();
  EXPECT_TRUE(content_of(store.open_region("main", options())) == expected);
}

TEST_P(FullDisk, CommitsWithEveryAmountOfFreeSpace) {
  const SmallDisk disk(16 * kMiB);
  VELLUM_NEEDS(disk);
  StoreOptions tiny = plain();
  tiny.journal_half_bytes = 64u << 10;
  tiny.pack_bytes = 1u << 20;
  auto [store, region] = begin(disk, tiny, 2 * kMiB, kMiB);
  region.commit();
  auto good = content_of(region);
  std::mt19937_64 random(7);
  int failures = 0;
  for (int round = 0; round < 60; ++round) {
    // Now a few words, now many pages.
    const std::uint64_t length = random() % 3 == 0 ? 300'000 : 40;
    const std::uint64_t from = random() % (2 * kMiB - length) / 8 * 8;
    randomise(region, from, from + length, static_cast<std::uint64_t>(round));
    const auto after = content_of(region);
    disk.fill(random() % 40 * kPage);
    bool committed = true;
    try {
      if (round % 4 == 0) {
        region.snapshot("s" + std::to_string(round));
      } else {
        region.commit();
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::no_space) << error.what();
      committed = false;
      ++failures;
    }
    EXPECT_TRUE(content_of(region) == after);
    disk.make_room();
    const auto head = content_of(store, "main");
    // A snapshot may have committed before its name could not be written.
    EXPECT_TRUE(head == (committed ? after : good) || (round % 4 == 0 && head == after)) << round;
    good = head;
    if (random() % 2 == 0) {
      region.rollback();
      EXPECT_TRUE(content_of(region) == good) << round;
    }
    if (random() % 8 == 0) {
      region.commit();
      good = content_of(region);
      region.close();
      region = store.open_region("main", options());
      ASSERT_TRUE(content_of(region) == good) << round;
    }
  }
  EXPECT_GT(failures, 5);
  region.commit();
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// A commit frees unneeded space before it fails: a region can be rewritten without end where it
// fits twice.
TEST_P(FullDisk, ACommitCollectsBeforeItFails) {
  const SmallDisk disk(24 * kMiB);
  VELLUM_NEEDS(disk);
  auto [store, region] = begin(disk, plain(), 8 * kMiB, 8 * kMiB);
  region.snapshot("first");
  const auto first = content_of(region);
  for (std::uint64_t n = 0; n < 40; ++n) {
    const std::uint64_t from = n % 4 * kMiB;
    randomise(region, from, from + kMiB, n);
    if (n % 3 == 0) {
      region.snapshot("s");
      store.remove_snapshot("s");
    } else {
      region.commit();
    }
  }
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  EXPECT_TRUE(content_of(store, "first") == first);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  // This does not fit, whatever is freed.
  disk.fill(0);
  randomise(region, 0, 8 * kMiB, 99);
  const auto wanted = content_of(region);
  expect_error(Errc::no_space, {disk / "store"}, [&] { region.commit(); });
  EXPECT_TRUE(content_of(region) == wanted);
  disk.make_room();
}

// An asynchronous commit collects for the next one.
TEST_P(FullDisk, AFailedAsynchronousCommitFreesSpace) {
  const SmallDisk disk(24 * kMiB);
  VELLUM_NEEDS(disk);
  auto [store, region] = begin(disk, plain(), 8 * kMiB, 8 * kMiB);
  region.commit();
  int failures = 0;
  for (std::uint64_t n = 0; n < 40; ++n) {
    randomise(region, n % 8 * kMiB, (n % 8 + 1) * kMiB, n);
    try {
      region.commit_async().get();
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), Errc::no_space) << e.what();
      ++failures;
      region.commit_async().get();
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
}

TEST_P(FullDisk, ACommitFailsAtOnceWithoutFreeableSpace) {
  const SmallDisk disk(24 * kMiB);
  VELLUM_NEEDS(disk);
  std::filesystem::remove(directory_ / "image");
  Store store = Store::create(disk / "store", plain());
  RegionOptions with = options();
  with.background_gc = false;
  Region region = store.create_region("main", 8 * kMiB, with);
  const auto rewrite_all = [&] {
    for (std::uint64_t n = 0; n < 40; ++n) {
      randomise(region, n % 8 * kMiB, (n % 8 + 1) * kMiB, n);
      region.commit();
    }
  };
  EXPECT_ERRC(rewrite_all(), Errc::no_space);
  region.rollback();
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
}

TEST_P(FullDisk, AReadOnlyMediumIsReadable) {
  const SmallDisk disk(16 * kMiB);
  VELLUM_NEEDS(disk);
  {
    Store store = Store::create(disk / "store");
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    region.snapshot("s");
  }
  disk.make_read_only();
  Store store = Store::open(disk / "store");
  EXPECT_EQ(word_at(store.open_version("s", options()), 0), 1u);
  EXPECT_EQ(word_at(store.open_version("main", options()), 0), 1u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { (void)store.open_region("main", options()); },
           [&] { store.create_region("other", kMiB, options()); },
           [&] { store.create_snapshot("t", "s"); }, [&] { store.create_branch("b", "s"); },
           [&] { store.remove_snapshot("s"); }, [&] { store.remove_branch("main"); },
           [&] { Store::create(disk / "another"); }}) {
    EXPECT_ERRC(call(), Errc::read_only);
  }
}

VELLUM_BOTH_ENGINES(FullDisk);

}  // namespace
}  // namespace vellum::test
