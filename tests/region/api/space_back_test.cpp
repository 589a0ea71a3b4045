// Space that is no longer needed is freed while a region writes, without a command. The store keeps
// within a bound at every commit, and no version loses a byte.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "region/api/store_impl.hpp"
#include "support/disk/small_disk.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kRegionBytes = 8 * kMiB, kRewrittenBytes = 256 * kKiB;
// A 32nd of the default; so the bound is a 32nd of 64 MiB.
constexpr std::uint64_t kSlackBytes = kMiB, kBoundBytes = 2 * kMiB;

// A store whose writers look for garbage often; `in_call`: within their commits.
void collect_often(const Store& store, bool in_call) {
  store::WriterPolicy policy;
  policy.gc = {kSlackBytes, 128 * kKiB, 512 * kKiB, in_call};
  StoreAccess::core_of(store)->set_writer_policy(policy);
}

void randomise(const Region& region, std::uint64_t from, std::uint64_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::uint64_t at = from; at < from + length; at += 8) word_at(region, at) = random();
}

class SpaceBack : public StoreTest {
 protected:
  Store create(const StoreOptions& store_options, bool in_call = true) const {
    Store store = StoreTest::create(store_options);
    collect_often(store, in_call);
    return store;
  }
  static StoreOptions plain() {
    StoreOptions options;
    options.encoding.compression = Encoding::Compression::none;
    options.pack_bytes = 4 * kMiB;
    return options;
  }
  struct Begun {
    Store store;
    Region region;
  };
  Begun begin(bool background_gc = true, bool in_call = true) const {
    Store store = create(plain(), in_call);
    RegionOptions with = options();
    with.background_gc = background_gc;
    Region region = store.create_region("main", kRegionBytes, with);
    randomise(region, 0, kRegionBytes, 1);
    region.commit();
    return {std::move(store), std::move(region)};
  }
  // Rewrites a piece, another one each time.
  static void rewrite(const Region& region, std::uint64_t n) {
    randomise(region, n * kRewrittenBytes % kRegionBytes, kRewrittenBytes, n + 2);
  }
  static std::uint64_t taken(const Store& store) {
    std::uint64_t blocks = 0;
    for (const auto& pack : std::filesystem::directory_iterator(store.path() + "/packs")) {
      struct stat status{};
      // One may have been removed just now.
      if (::stat(pack.path().c_str(), &status) == 0) {
        blocks += static_cast<std::uint64_t>(status.st_blocks);
      }
    }
    return blocks * 512;
  }
  static bool within_bound(const Store& store) {
    const auto needed = static_cast<double>(store.stat().pack_needed_bytes);
    return static_cast<double>(taken(store)) <= 1.3 * needed + kBoundBytes;
  }
};

TEST_P(SpaceBack, ARegionThatIsRewrittenOftenStaysSmall) {
  auto [store, region] = begin();
  for (std::uint64_t n = 0; n < 200; ++n) {
    rewrite(region, n);
    region.commit();
    ASSERT_TRUE(within_bound(store)) << "commit " << n;
  }
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// Without it the store passes the bound, so the bound means something.
TEST_P(SpaceBack, DisabledGcFreesNothing) {
  auto [store, region] = begin(false);
  for (std::uint64_t n = 0; n < 80; ++n) {
    rewrite(region, n);
    region.commit();
  }
  region.close();
  EXPECT_FALSE(within_bound(store));
  EXPECT_GT(store.collect_garbage().freed_bytes, 15 * kMiB);
  EXPECT_TRUE(within_bound(store));
}

// A program is started many times, and writes less each time than triggers a check.
TEST_P(SpaceBack, ManyShortOpeningsCollectTogether) {
  Store store = create(plain());
  store.create_region("main", kMiB, options()).close();
  std::vector<std::byte> last;
  for (std::uint64_t n = 0; n < 100; ++n) {
    Region region = store.open_region("main", options());
    randomise(region, n * 64 * kKiB % kMiB, 64 * kKiB, n);
    region.commit();
    last = content_of(region);
    region.close();
    ASSERT_TRUE(within_bound(store)) << "use " << n;
  }
  EXPECT_TRUE(content_of(store, "main") == last);
}

// Several branches, none of which has much freeable space.
TEST_P(SpaceBack, ManyBranchesCollectTogether) {
  Store store = create(plain());
  std::vector<Region> regions;
  for (int i = 0; i < 8; ++i) {
    regions.push_back(store.create_region("b" + std::to_string(i), kMiB, options()));
  }
  for (std::uint64_t n = 0; n < 160; ++n) {
    const Region& region = regions[n % regions.size()];
    randomise(region, 0, kRewrittenBytes, n);
    regions[n % regions.size()].commit();
    ASSERT_TRUE(within_bound(store)) << "commit " << n;
  }
  for (std::size_t i = 0; i < regions.size(); ++i) {
    EXPECT_TRUE(content_of(store, "b" + std::to_string(i)) == content_of(regions[i])) << i;
  }
}

TEST_P(SpaceBack, SpaceOfRemovedSnapshotsIsFreed) {
  auto [store, region] = begin();
  std::vector<std::byte> kept;
  for (std::uint64_t n = 0; n < 120; ++n) {
    rewrite(region, n * 7);
    if (n % 4 != 0) {
      region.commit();
    } else {
      region.snapshot("s" + std::to_string(n));
      if (n == 60) kept = content_of(region);
      const std::uint64_t old = n - 12;
      if (n >= 12 && old != 60) store.remove_snapshot("s" + std::to_string(old));
      continue;  // the removed one's data is freed by the next step
    }
    ASSERT_TRUE(within_bound(store)) << "commit " << n;
  }
  EXPECT_TRUE(content_of(store, "s60") == kept);
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// Open versions, with names and without, are read long after all their pages were rewritten.
TEST_P(SpaceBack, VersionsOpenToReadersStay) {
  auto [store, region] = begin();
  std::vector<Region> readers;
  std::vector<std::vector<std::byte>> contents;
  for (std::uint64_t n = 0; n < 150; ++n) {
    rewrite(region, n);
    if (n % 30 != 0) {
      region.commit();
      continue;
    }
    const bool named = n % 60 == 0;
    if (named) {
      region.snapshot("s");
    } else {
      region.commit();
    }
    RegionOptions with = options();
    if (GetParam() == Engine::mapped) with.engine = Engine::automatic;
    readers.push_back(store.open_version(named ? "s" : "main", with));
    contents.push_back(content_of(region));
    if (named) store.remove_snapshot("s");
  }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    EXPECT_TRUE(content_of(readers[i]) == contents[i]) << i;
  }
  readers.clear();
  // The next check is due within an eighth of the size while they were open: 32 commits.
  for (std::uint64_t n = 0; n < 40; ++n) {
    rewrite(region, 1000 + n);
    region.commit();
  }
  EXPECT_TRUE(within_bound(store)) << "what they had open has gone, too";
}

// By default, a thread collects. Its progress at a commit is random.
TEST_P(SpaceBack, AThreadCollectsDuringCommitsAndReads) {
  auto [store, region] = begin(true, false);
  std::uint64_t n = 0;
  const auto go_on = [&, &s = store, &r = region] {
    rewrite(r, n);
    if (++n % 10 == 0) {
      r.snapshot("s" + std::to_string(n));
      if (n > 20) s.remove_snapshot("s" + std::to_string(n - 20));
    } else if (n % 3 == 0) {
      r.commit_async().get();
    } else {
      r.commit();
    }
  };
  while (n < 150) go_on();
  while (taken(store) > 30 * kMiB && n < 5000) go_on();
  EXPECT_LE(taken(store), 30 * kMiB);
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  region.close();
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// The child has no gc thread, and every call on its copy ends.
TEST_P(SpaceBack, AForkDuringGcIsHarmless) {
  auto [store, region] = begin(true, false);
  for (std::uint64_t n = 0; n < 40; ++n) {
    rewrite(region, n);
    region.commit();
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      region = Region();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
}

// A corrupted name keeps gc from freeing anything: commits continue, and an error is reported.
TEST_P(SpaceBack, AnErrorOfGcIsReportedAndNoErrorOfACommit) {
  auto [store, region] = begin();
  region.snapshot("s");
  std::filesystem::resize_file(path() + "/snapshots/s.ref", 10);
  testing::internal::CaptureStderr();
  for (std::uint64_t n = 0; n < 80; ++n) {
    rewrite(region, n);
    region.commit();
  }
  EXPECT_TRUE(content_of(store, "main") == content_of(region));
  region.close();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("s.ref"), std::string::npos) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

VELLUM_BOTH_ENGINES(SpaceBack);

}  // namespace
}  // namespace vellum::test
