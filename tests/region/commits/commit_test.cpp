// After reopening, a region has the content of its last commit, and nothing else.
#include <algorithm>
#include <chrono>

#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Commit : public StoreTest {};

TEST_P(Commit, ACommitSurvivesReopeningTheStore) {
  {
    Store store = create();
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    word_at(region, kMiB - 8) = 2;
    region.commit();
    word_at(region, 0) = 3;
  }
  Region region = Store::open(path()).open_region("main", options());
  EXPECT_EQ(word_at(region, 0), 1u);
  EXPECT_EQ(word_at(region, kMiB - 8), 2u);
  EXPECT_TRUE(all_zero(bytes_of(region) + 8, kMiB - 16));
}

TEST_P(Commit, UncommittedStoresAreLost) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    std::memset(region.data(), 1, kMiB);
  }
  Region region = store.open_region("main", options());
  EXPECT_TRUE(all_zero(bytes_of(region), kMiB));
}

TEST_P(Commit, ACommitTakesEveryKindOfChange) {
  constexpr std::uint64_t kRandomEnd =
      256 * kPage;  // pages that do not compress; then pages of 'x'
  constexpr std::uint64_t kEqualEnd = kRandomEnd + 100 * kPage;
  constexpr std::uint64_t kWordAt = 456 * kPage;  // a page with one word; all others are zero
  struct Change {
    std::uint64_t from, length_bytes;
    int value;
    const char* what;
  };
  constexpr Change kChanges[] = {{12 * kPage, 1, 1, "a byte of a random page"},
                                 {20 * kPage, 30 * kPage, 0, "random pages become zero"},
                                 {60 * kPage + 5, 3 * kPage, 7, "random pages, not aligned"},
                                 {kRandomEnd, kPage, 'x', "a store of equal bytes"},
                                 {kEqualEnd - kPage, kPage, 0, "a page of x becomes zero"},
                                 {kWordAt + kPage, 8, 6, "a word of a zero page"}};
  Store store = create();
  std::vector<std::byte> expected;
  {
    Region region = store.create_region("main", 2 * kMiB, options());
    std::byte* const at = bytes_of(region);
    std::uint64_t random = 88172645463325252u;
    for (std::uint64_t i = 0; i < kRandomEnd; i += 8) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      word_at(region, i) = random;
    }
    std::memset(at + kRandomEnd, 'x', kEqualEnd - kRandomEnd);
    word_at(region, kWordAt) = 5;
    region.commit();
    for (const Change& c : kChanges) std::memset(at + c.from, c.value, c.length_bytes);
    region.commit();
    expected = content_of(region);
  }
  Region region = store.open_region("main", options());
  for (const auto& [from, length_bytes, value, what] : kChanges) {
    const std::byte* const at = bytes_of(region) + from;
    EXPECT_TRUE(std::all_of(at, at + length_bytes,
                            [v = static_cast<std::byte>(value)](std::byte b) { return b == v; }))
        << what;
  }
  EXPECT_EQ(content_of(region), expected);
  EXPECT_EQ(content_of(store, "main"), expected);
}

TEST_P(Commit, ACommitOfRangesTakesOnlyTheirPages) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.commit();
  word_at(region, 3 * kPage) = 1;
  word_at(region, 9 * kPage - 8) = 2;
  word_at(region, 9 * kPage) = 3;
  word_at(region, 20 * kPage) = 4;
  // A page twice, a range over two pages, one without a store, and an empty range.
  const auto report = region.commit_ranges(
      {{9 * kPage - 8, 16}, {3 * kPage + 100, 1}, {3 * kPage, 8}, {30 * kPage, kPage}, {kMiB, 0}});
  EXPECT_EQ(report.pages_changed, 3U);
  {
    const Region committed = store.open_version("main", options());
    EXPECT_EQ(word_at(committed, 3 * kPage), 1U);
    EXPECT_EQ(word_at(committed, 9 * kPage - 8), 2U);
    EXPECT_EQ(word_at(committed, 9 * kPage), 3U);
    EXPECT_EQ(word_at(committed, 20 * kPage), 0U) << "nobody has named it";
  }
  word_at(region, 9 * kPage) = 5;
  EXPECT_EQ(region.commit_ranges({{9 * kPage, 8}}).pages_changed, 1U) << "again";
  EXPECT_EQ(region.commit_ranges({}).sequence, 3U) << "nothing to do";
  EXPECT_EQ(region.commit().pages_changed, 1U) << "what was left";
  EXPECT_EQ(word_at(store.open_version("main", options()), 20 * kPage), 4U);
  expect_error(Errc::invalid_argument, {"main"}, [&] { region.commit_ranges({{kMiB - 8, 16}}); });
  expect_error(Errc::invalid_argument, {"main"}, [&] { region.commit_ranges({{kMiB + 1, 0}}); });
}

TEST_P(Commit, DroppedCopiesKeepTheirContent) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::memset(region.data(), 1, kMiB);
  region.commit();
  std::memset(bytes_of(region) + 8 * kPage, 2, 16 * kPage);
  region.commit_ranges({{8 * kPage, 16 * kPage}});
  region.drop_copies({{0, kMiB}});
  EXPECT_EQ(bytes_of(region)[8 * kPage - 1], std::byte{1});
  EXPECT_EQ(bytes_of(region)[8 * kPage], std::byte{2});
  EXPECT_EQ(bytes_of(region)[24 * kPage - 1], std::byte{2});
  EXPECT_EQ(region.commit().sequence, 2U);
  word_at(region, 9 * kPage) = 5;
  EXPECT_EQ(region.commit().pages_changed, 1U);
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  expect_error(Errc::invalid_argument, {"main"}, [&] { region.drop_copies({{kMiB, 1}}); });
}

TEST_P(Commit, ACommitWithoutChangesMakesNoVersion) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  const auto first = region.commit();
  EXPECT_EQ(first.sequence, 1u);
  for (int i = 0; i < 3; ++i) {
    const auto empty = region.commit("nothing");
    EXPECT_EQ(empty.sequence, first.sequence);
    EXPECT_EQ(empty.pages_changed, 0u);
    EXPECT_EQ(empty.bytes_written, 0u);
  }
  word_at(region, 0) = 1;  // a store, but no change
  EXPECT_EQ(region.commit().sequence, first.sequence);
  EXPECT_EQ(region.sequence(), first.sequence);
  word_at(region, 0) = 2;
  EXPECT_EQ(region.commit().sequence, first.sequence + 1);
}

TEST_P(Commit, TheReportHasPagesBytesAndTimes) {
  Store store = create();
  Region region = store.create_region("main", 16 * kMiB, options());
  for (std::uint64_t page = 0; page < 100; ++page) word_at(region, page * 16 * kPage) = page + 1;
  const auto first = region.commit();
  EXPECT_GE(first.pages_dirty, 100u);
  EXPECT_EQ(first.pages_changed, 100u);
  EXPECT_GE(first.bytes_written, 100u);
  EXPECT_LE(first.bytes_written, 100 * 64u);
  word_at(region, 48) = 7;
  word_at(region, 48 * kPage) = 8;
  word_at(region, 48 * kPage + 512) = 9;
  const auto second = region.commit();
  EXPECT_GE(second.pages_dirty, 2u);
  EXPECT_EQ(second.pages_changed, 2u);
  EXPECT_GT(second.bytes_written, 0u);
  EXPECT_LE(second.bytes_written, 512u);
  for (const auto& report : {first, second}) {
    EXPECT_EQ(report.scan_time + report.encode_time + report.write_time + report.flush_time +
                  report.publish_time,
              report.total_time);
    EXPECT_GT(report.flush_time.count(), 0);
  }
}

TEST_P(Commit, ALargeCommitIsWrittenToPacks) {
  Store store = create();
  Region region = store.create_region("main", 8 * kMiB, options());
  std::uint64_t random = 1;
  for (std::uint64_t i = 0; i < 8 * kMiB; i += 8) {
    word_at(region, i) = random = random * 6364136223846793005u + 1442695040888963407u;
  }
  const auto report = region.commit();
  EXPECT_TRUE(report.checkpointed);
  EXPECT_EQ(report.pages_changed, 2048u);
  EXPECT_GE(report.bytes_written, 7 * kMiB);
  EXPECT_LE(report.bytes_written, 9 * kMiB);
}

TEST_P(Commit, TheMessageAndTheTimeAreStored) {
  const auto now = [] { return std::chrono::system_clock::now(); };
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  const auto before = now();
  word_at(region, 0) = 1;
  region.commit("first");
  EXPECT_EQ(store.version("main").message, "first");
  word_at(region, 0) = 2;
  region.snapshot("kept", "the second");
  word_at(region, 0) = 3;
  region.commit();
  const auto after = now();
  const auto versions = store.versions();
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(versions[0].name, "kept");
  EXPECT_FALSE(versions[0].is_branch);
  EXPECT_EQ(versions[0].branch, "main");
  EXPECT_EQ(versions[0].message, "the second");
  EXPECT_EQ(versions[0].sequence, 2u);
  EXPECT_EQ(versions[0].region_bytes, kMiB);
  EXPECT_EQ(versions[1].name, "main");
  EXPECT_TRUE(versions[1].is_branch);
  EXPECT_EQ(versions[1].message, "");
  EXPECT_EQ(versions[1].sequence, 3u);
  for (const auto& version : versions) {
    EXPECT_GE(version.committed_at, before);
    EXPECT_LE(version.committed_at, after);
  }
  EXPECT_LE(versions[0].committed_at, versions[1].committed_at);
  region.close();
  EXPECT_EQ(store.version("main").parent, "kept");
}

TEST_P(Commit, ManySmallCommitsFillTheJournalManyTimes) {
  StoreOptions small;
  small.journal_half_bytes = 64u << 10;
  small.pack_bytes = 1u << 20;
  Store store = create(small);
  constexpr std::uint64_t kCommits = 3000;
  {
    Region region = store.create_region("main", 4 * kMiB, options());
    for (std::uint64_t i = 1; i <= kCommits; ++i) {
      for (std::uint64_t k = 0; k < 4; ++k) word_at(region, (i * 7 + k * 131) % 1024 * kPage) = i;
      word_at(region, 8) = i;
      ASSERT_EQ(region.commit().sequence, i);
    }
  }
  Region region = Store::open(path()).open_region("main", options());
  EXPECT_EQ(region.sequence(), kCommits);
  EXPECT_EQ(word_at(region, 8), kCommits);
  for (std::uint64_t i = kCommits; i > kCommits - 200; --i) {
    EXPECT_GE(word_at(region, (i * 7 + 131) % 1024 * kPage), i);
  }
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(Commit, TheSizeIsRoundedUpToPages) {
  Store store = create();
  Region region = store.create_region("main", 5000, options());
  EXPECT_EQ(region.size_bytes(), 8192u);
  bytes_of(region)[8191] = std::byte{1};
  region.commit();
  EXPECT_EQ(store.version("main").region_bytes, 8192u);
}

TEST_P(Commit, OpenOrCreateGrowsASmallerRegion) {
  Store store = Store::open_or_create(path());
  {
    Region region = store.open_or_create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    region.commit();
  }
  Region region = Store::open_or_create(path()).open_or_create_region("main", 2 * kMiB, options());
  EXPECT_EQ(region.size_bytes(), 2 * kMiB);
  EXPECT_EQ(word_at(region, 0), 1u);
  EXPECT_TRUE(all_zero(bytes_of(region) + kMiB, kMiB));
}

TEST_P(Commit, ClosedAndMovedRegions) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  EXPECT_TRUE(region.valid());
  EXPECT_TRUE(region.writable());
  EXPECT_EQ(region.engine(), GetParam());
  EXPECT_EQ(region.name(), "main");
  void* const data = region.data();
  Region moved = std::move(region);
  EXPECT_EQ(moved.data(), data);
  word_at(moved, 0) = 1;
  moved.commit();
  moved.close();
  EXPECT_FALSE(moved.valid());
  EXPECT_EQ(moved.data(), nullptr);
  EXPECT_EQ(moved.size_bytes(), 0u);
  for (Region* closed : {&region, &moved}) {
    EXPECT_ERRC(closed->commit(), Errc::invalid_argument);
    EXPECT_ERRC(closed->snapshot("x"), Errc::invalid_argument);
    EXPECT_ERRC(closed->rollback(), Errc::invalid_argument);
    EXPECT_ERRC(closed->grow(kMiB), Errc::invalid_argument);
    EXPECT_ERRC(closed->close(), Errc::invalid_argument);
    EXPECT_ERRC((void)closed->pin({0, 1}), Errc::invalid_argument);
    EXPECT_ERRC(closed->prefetch({0, 1}), Errc::invalid_argument);
    EXPECT_ERRC((void)closed->name(), Errc::invalid_argument);
    EXPECT_ERRC((void)closed->sequence(), Errc::invalid_argument);
  }
  EXPECT_EQ(word_at(store.open_region("main", options()), 0), 1u);
}

VELLUM_BOTH_ENGINES(Commit);

}  // namespace
}  // namespace vellum::test
