// Branches and snapshots are created from versions, removed and compared.
#include <atomic>
#include <thread>

#include "base/clock.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

class Branches : public StoreTest {};

TEST_P(Branches, ABranchOfASnapshotIsIndependent) {
  Store store = create();
  Region region = store.create_region("main", 2 * kMiB, options());
  std::memset(region.data(), 1, kMiB);
  region.snapshot("base");
  word_at(region, 0) = 2;
  region.commit();
  store.create_branch("side", "base");
  Region side = store.open_region("side", options());
  EXPECT_EQ(side.size_bytes(), 2 * kMiB);
  EXPECT_EQ(bytes_of(side)[0], std::byte{1});
  word_at(side, kPage) = 3;
  word_at(side, kMiB + kPage) = 4;
  side.snapshot("side-1");
  EXPECT_EQ(store.version("side-1").parent, "base");
  EXPECT_EQ(store.version("side-1").branch, "side");
  EXPECT_EQ(word_at(region, kPage), 0x0101010101010101u);
  EXPECT_EQ(word_at(region, 0), 2u);
  region.close();
  side.close();
  Region main = store.open_region("main", options());
  EXPECT_EQ(word_at(main, 0), 2u);
  EXPECT_EQ(word_at(main, kPage), 0x0101010101010101u);
  EXPECT_EQ(word_at(store.open_region("side", options()), kMiB + kPage), 4u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(Branches, ABranchGetsAnotherName) {
  Store store = create();
  Region region = store.create_region("main", 2 * kMiB, options());
  word_at(region, 0) = 1;
  region.snapshot("base");
  word_at(region, kPage) = 2;
  region.commit();
  EXPECT_ERRC(store.rename_branch("main", "other"), Errc::busy);
  region.close();
  EXPECT_ERRC(store.rename_branch("none", "other"), Errc::not_found);
  EXPECT_ERRC(store.rename_branch("base", "other"), Errc::not_found);
  EXPECT_ERRC(store.rename_branch("main", "base"), Errc::already_exists);
  EXPECT_ERRC(store.rename_branch("main", "main"), Errc::already_exists);
  EXPECT_ERRC(store.rename_branch("main", "a/b"), Errc::invalid_argument);
  const VersionInfo before = store.version("main");
  store.rename_branch("main", "other");
  EXPECT_FALSE(store.contains("main"));
  const VersionInfo after = store.version("other");
  EXPECT_EQ(after.sequence, before.sequence);
  EXPECT_EQ(after.committed_at, before.committed_at);
  EXPECT_EQ(after.parent, "base");
  EXPECT_EQ(store.version("base").branch, "main");
  Region other = store.open_region("other", options());
  EXPECT_EQ(word_at(other, 0), 1u);
  EXPECT_EQ(word_at(other, kPage), 2u);
  word_at(other, 0) = 3;
  other.snapshot("next");
  EXPECT_EQ(store.version("next").branch, "other");
  store.create_region("main", kMiB, options());
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(Branches, ABranchStartsFromABranch) {
  Store store = create();
  store.create_region("b0", kMiB, options()).snapshot("s0");
  for (std::uint64_t i = 1; i <= 5; ++i) {
    const std::string from = "s" + std::to_string(i - 1), to = std::to_string(i);
    store.create_branch("b" + to, from);
    Region region = store.open_region("b" + to, options());
    EXPECT_EQ(word_at(region, 0), i - 1);
    word_at(region, 0) = i;
    word_at(region, i * kPage) = i;
    region.snapshot("s" + to);
  }
  Region last = store.open_version("s5", options());
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(word_at(last, i * kPage), i);
}

// Only the writer may checkpoint the journal's content, so it is copied.
TEST_P(Branches, ASnapshotOfAHeadThatHasAWriter) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  std::memset(region.data(), 7, kMiB / 2);
  region.snapshot("base");
  for (std::uint64_t i = 1; i <= 10; ++i) {
    word_at(region, i * kPage) = i;
    std::memset(bytes_of(region) + (100 + i) * kPage, 0, kPage);
    region.commit("commit " + std::to_string(i));
  }
  word_at(region, 0) = 77;  // not committed
  Store outside = Store::open(path());
  outside.create_snapshot("s", "main");
  region.commit();
  outside.create_snapshot("t", "main", "later");
  EXPECT_ERRC(outside.create_snapshot("t", "main"), Errc::already_exists);
  word_at(region, kPage) = 88;
  region.snapshot("u");
  EXPECT_EQ(store.version("s").sequence, 11u);
  EXPECT_EQ(store.version("s").message, "commit 10");
  EXPECT_EQ(store.version("s").branch, "main");
  EXPECT_EQ(store.version("t").message, "later");
  for (const auto& version : store.versions())
    EXPECT_TRUE(!version.is_branch || version.name == "main") << version.name;
  store.collect_garbage();
  region.close();
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  for (const char* name : {"s", "t"}) {
    Region version = store.open_version(name, options());
    EXPECT_EQ(word_at(version, 0), name[0] == 's' ? 0x0707070707070707u : 77u);
    for (std::uint64_t i = 1; i <= 10; ++i) {
      EXPECT_EQ(word_at(version, i * kPage), i);
      EXPECT_EQ(word_at(version, (100 + i) * kPage), 0u);
    }
  }
}

TEST_P(Branches, ASnapshotOfAHeadWithoutAWriter) {
  const std::int64_t before_ns = base::wall_clock_ns();
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    for (std::uint64_t i = 1; i <= 10; ++i) {
      word_at(region, i * kPage) = i;
      region.commit("commit " + std::to_string(i));  // these are only in the journal
    }
  }
  store.create_snapshot("s", "main");
  store.create_snapshot("t", "s", "of a snapshot");
  Region region = store.open_region("main", options());
  word_at(region, 0) = 99;
  region.commit();
  for (const char* name : {"s", "t"}) {
    Region version = store.open_version(name, options());
    EXPECT_EQ(word_at(version, 0), 0u);
    for (std::uint64_t i = 1; i <= 10; ++i) EXPECT_EQ(word_at(version, i * kPage), i);
  }
  EXPECT_EQ(store.version("s").message, "commit 10");
  EXPECT_EQ(store.version("t").message, "of a snapshot");
  const auto core = store::StoreDirectory::open(base::posix_fs(), path());
  for (const char* name : {"s", "t"}) {
    EXPECT_GE(store::resolve_version(*core, name).created_ns, before_ns);
  }
}

TEST_P(Branches, ABranchStartsAtACommitThatIsOnlyInTheJournal) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  region.snapshot("first");
  for (std::uint64_t i = 1; i <= 3; ++i) {
    word_at(region, 0) = i;
    region.commit();
    const std::string name = "branch-" + std::to_string(i);
    store.create_branch(name, "main");  // beside its writer
    EXPECT_EQ(word_at(store.open_region(name, options()), 0), i);
  }
  region.close();
  store.create_branch("after", "main");
  EXPECT_EQ(word_at(store.open_region("after", options()), 0), 3u);
  EXPECT_EQ(store.versions().size(), 6u);  // and no other name
}

TEST_P(Branches, ASnapshotAfterACrashIncludesTheJournal) {
  StoreOptions small;
  small.journal_half_bytes = 64u << 10;
  Store store = create(small);
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.commit("journal only");
  // After a crash the files are as they are while the writer exists.
  std::filesystem::copy(path(), directory_ / "crashed", std::filesystem::copy_options::recursive);
  Store crashed = Store::open(directory_ / "crashed");
  crashed.create_snapshot("s", "main");
  EXPECT_EQ(word_at(crashed.open_version("s", options()), 0), 1u);
  EXPECT_EQ(crashed.version("s").message, "journal only");
  EXPECT_EQ(word_at(crashed.open_region("main", options()), 0), 1u);
}

TEST_P(Branches, RemovedVersionsAreGone) {
  Store store = create();
  Region region = store.create_region("main", kMiB, options());
  word_at(region, 0) = 1;
  region.snapshot("a");
  word_at(region, 0) = 2;
  region.snapshot("b");
  store.create_branch("side", "a");
  Region open = store.open_version("a", options());
  store.remove_snapshot("a");
  EXPECT_FALSE(store.contains("a"));
  EXPECT_EQ(word_at(open, 0), 1u);  // open versions stay
  EXPECT_EQ(word_at(store.open_version("b", options()), 0), 2u);
  EXPECT_EQ(word_at(store.open_region("side", options()), 0), 1u);
  store.remove_branch("side");
  EXPECT_FALSE(store.contains("side"));
  EXPECT_ERRC(store.remove_branch("main"), Errc::busy);
  region.close();
  store.remove_branch("main");
  EXPECT_EQ(store.versions().size(), 1u);
  EXPECT_EQ(word_at(store.open_version("b", options()), 0), 2u);
  // A name can be used again, and starts afresh.
  Region again = store.create_region("main", kMiB, options());
  EXPECT_EQ(word_at(again, 0), 0u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(Branches, DiffFindsExactlyWhatDiffers) {
  Store store = create();
  Region region = store.create_region("main", 4 * kMiB, options());
  std::memset(region.data(), 7, kMiB);
  region.snapshot("a");
  const auto before = content_of(region);
  std::memset(bytes_of(region) + 100, 8, 50);
  std::memset(bytes_of(region) + 3 * kPage - 10, 9, 20);  // over a page's end
  std::memset(bytes_of(region) + 50 * kPage, 0, 3 * kPage);
  bytes_of(region)[4 * kMiB - 1] = std::byte{1};
  std::memset(bytes_of(region) + 80 * kPage, 7, kPage);  // no difference
  region.snapshot("b");
  region.grow(5 * kMiB);
  bytes_of(region)[5 * kMiB - 3] = std::byte{2};
  region.commit();
  const auto after = content_of(region);
  for (const std::string& to : {std::string("b"), std::string("main")}) {
    std::vector<char> named(5 * kMiB, 0);
    std::uint64_t end = 0, ranges = 0, bytes = 0;
    const auto totals = store.diff("a", to, [&](const ByteRange& range) {
      EXPECT_TRUE(ranges == 0 || range.offset_bytes > end) << "ascending, and maximal";
      end = range.offset_bytes + range.length_bytes;
      ASSERT_LE(end, named.size());
      for (std::uint64_t i = range.offset_bytes; i < end; ++i) named[i] = 1;
      ++ranges;
      bytes += range.length_bytes;
    });
    EXPECT_EQ(totals.ranges, ranges);
    EXPECT_EQ(totals.bytes_different, bytes);
    EXPECT_EQ(totals.pages_different, to == "b" ? 7u : 8u);
    for (std::uint64_t i = 0; i < after.size(); ++i) {
      const std::byte was = i < before.size() ? before[i] : std::byte{0};
      const std::byte is = to == "b" && i >= 4 * kMiB ? std::byte{0} : after[i];
      ASSERT_EQ(named[i] != 0, was != is) << i << " in " << to;
    }
  }
  EXPECT_EQ(store.diff("a", "a", nullptr).bytes_different, 0u);
}

TEST_P(Branches, StatAndVerifyCountBranches) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    region.snapshot("a");
    store.create_branch("side", "a");
    word_at(region, 0) = 2;
    region.commit();
    std::uint64_t calls = 0;
    const auto report = store.verify({.read_data = true}, [&](const Progress& progress) {
      ++calls;
      EXPECT_LE(progress.done, progress.total);
    });
    EXPECT_EQ(report.versions, 3u);
    EXPECT_TRUE(report.damages.empty());
    EXPECT_GE(report.packs, 1u);
    EXPECT_GT(report.records, 0u);
    EXPECT_GT(report.bytes_read, 0u);
    EXPECT_GT(calls, 0u);
    EXPECT_TRUE(store.verify().damages.empty());
  }
  const auto stat = store.stat();
  EXPECT_EQ(stat.branches, 2u);
  EXPECT_EQ(stat.snapshots, 1u);
  EXPECT_GE(stat.packs, 1u);
  EXPECT_GT(stat.stored_bytes, 0u);
  EXPECT_GT(stat.pack_bytes, 0u);
  EXPECT_GT(stat.journal_bytes, 0u);
  EXPECT_GT(stat.ref_bytes, 0u);
  EXPECT_EQ(stat.full_copy_bytes, 3 * kPage);
}

TEST_P(Branches, ASnapshotIsConvertedToABranch) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    region.snapshot("s");
    word_at(region, 0) = 2;
    region.commit();
  }
  store.convert_to_branch("s");
  store.convert_to_branch("s");  // is one already
  EXPECT_TRUE(store.version("s").is_branch);
  {
    Region region = store.open_region("s", options());
    EXPECT_EQ(word_at(region, 0), 1u);
    word_at(region, 0) = 3;
    region.commit();
  }
  store.collect_garbage();
  EXPECT_EQ(word_at(store.open_version("s", options()), 0), 3u);
  EXPECT_EQ(word_at(store.open_version("main", options()), 0), 2u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  EXPECT_ERRC(store.convert_to_branch("nobody"), Errc::not_found);
}

TEST_P(Branches, VersionsRemovedDuringAListingAreOmitted) {
  Store store = create();
  store.create_region("main", kMiB, options()).snapshot("base");
  std::atomic<bool> ended = false;
  std::thread other([&] {
    for (int i = 0; i < 30; ++i) {
      store.create_branch("side", "base");
      store.remove_branch("side");
    }
    ended = true;
  });
  while (!ended) EXPECT_NO_THROW(EXPECT_GE(store.versions().size(), 2u));
  other.join();
}

// Killed between its two steps: the name denotes the snapshot, and the next call completes the
// conversion.
TEST_P(Branches, AnInterruptedConversionToABranchIsCompleted) {
  Store store = create();
  {
    Region region = store.create_region("main", kMiB, options());
    word_at(region, 0) = 1;
    region.snapshot("s");
  }
  const std::string ref = path() + "/snapshots/s.ref";
  ASSERT_TRUE(std::filesystem::exists(ref));
  std::filesystem::copy_file(ref, path() + "/kept");
  store.convert_to_branch("s");
  std::filesystem::rename(path() + "/kept", ref);
  EXPECT_FALSE(store.version("s").is_branch);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
  EXPECT_EQ(word_at(store.open_version("s", options()), 0), 1u);
  store.convert_to_branch("s");
  EXPECT_TRUE(store.version("s").is_branch);
  EXPECT_EQ(word_at(store.open_region("s", options()), 0), 1u);
}

VELLUM_BOTH_ENGINES(Branches);

}  // namespace
}  // namespace vellum::test
