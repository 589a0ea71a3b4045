// Several regions, of one store or of several, do not disturb each other.
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class SeveralRegions : public StoreTest {};

TEST_P(SeveralRegions, RegionsOfOneStoreCommitIndependently) {
  Store store = create();
  std::vector<Region> regions;
  for (int i = 0; i < 4; ++i) {
    regions.push_back(store.create_region("r" + std::to_string(i), kMiB, options()));
  }
  for (std::uint64_t round = 1; round <= 5; ++round) {
    for (std::size_t i = 0; i < regions.size(); ++i) {
      word_at(regions[i], round * kPage) = round * 10 + i;
      if (i % 2 == 0) regions[i].commit();
    }
  }
  regions.clear();
  for (std::size_t i = 0; i < 4; ++i) {
    Region region = store.open_region("r" + std::to_string(i), options());
    for (std::uint64_t round = 1; round <= 5; ++round) {
      EXPECT_EQ(word_at(region, round * kPage), i % 2 == 0 ? round * 10 + i : 0);
    }
  }
}

// Closing a region of Privateer (github.com/LLNL/Privateer at dcb5a80) replaces the process's
// handler for SIGSEGV, on which the others live.
TEST_P(SeveralRegions, ClosingOneLeavesTheOthersOpen) {
  Store first = create();
  Store second = Store::create(directory_ / "second");
  Region a = first.create_region("main", kMiB, options());
  Region b = second.create_region("main", kMiB, options());
  Region c = first.create_region("other", kMiB, options());
  word_at(a, 0) = 1;
  word_at(b, 0) = 2;
  word_at(c, 0) = 3;
  a.snapshot("s");
  Region version = first.open_version("s", options());
  a.close();
  b.commit();
  c.commit();
  EXPECT_EQ(word_at(version, 0), 1u);
  word_at(b, 500 * 8) = 5;  // chunks that were missing when the first region was closed
  word_at(c, kMiB - 8) = 6;
  c.close();
  b.commit();
  EXPECT_EQ(word_at(version, kMiB - 8), 0u);
  version.close();
  EXPECT_EQ(word_at(b, 500 * 8), 5u);
  EXPECT_EQ(word_at(first.open_region("other", options()), 0), 3u);
}

TEST_P(SeveralRegions, RegionsOfBothEnginesAreOpenAtOnce) {
  if (!engine_available(Engine::uffd)) GTEST_SKIP() << kNoUffd;
  Store store = create();
  RegionOptions other = options();
  other.engine = GetParam() == Engine::uffd ? Engine::sigsegv : Engine::uffd;
  Region a = store.create_region("a", 4 * kMiB, options());
  Region b = store.create_region("b", 4 * kMiB, other);
  for (std::uint64_t page = 0; page < 1024; page += 3) {
    word_at(a, page * kPage) = page;
    word_at(b, page * kPage) = page + 1;
  }
  a.commit();
  b.commit();
  a.close();
  b.close();
  a = store.open_region("a", other);  // one engine reads the commits of the other
  b = store.open_region("b", options());
  for (std::uint64_t page = 0; page < 1024; page += 3) {
    EXPECT_EQ(word_at(a, page * kPage), page);
    EXPECT_EQ(word_at(b, page * kPage), page + 1);
  }
}

VELLUM_BOTH_ENGINES(SeveralRegions);

}  // namespace
}  // namespace vellum::test
