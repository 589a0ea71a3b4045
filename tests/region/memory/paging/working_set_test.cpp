// A version opens with the pages that its last use touched.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "support/paging.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

namespace stdfs = std::filesystem;

constexpr std::uint64_t kWorkingSetChunk = 64u << 10;
constexpr std::uint64_t kWorkingSetSize = 16 * kMiB;
constexpr std::uint64_t kChunks = kWorkingSetSize / kWorkingSetChunk;

class WorkingSets : public StoreTest {
 protected:
  // Snapshot "s", and branch "main" with the same content.
  Store filled() const {
    Store store = create();
    Region region = store.create_region("main", kWorkingSetSize, options());
    for (std::uint64_t at = 0; at < kWorkingSetSize; at += 8) word_at(region, at) = mix(at);
    region.snapshot("s");
    return store;
  }
  RegionOptions remembering(std::uint64_t limit_bytes = 0) const {
    RegionOptions o = options();
    o.working_set = true;
    o.memory_limit_bytes = limit_bytes;
    return o;
  }
  std::string hint(const std::string& name) const { return path() + "/hints/" + name + ".set"; }
  std::string bytes_of_hint(const std::string& name) const {
    std::ifstream in(hint(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_hint(const std::string& name, const std::string& bytes) const {
    stdfs::create_directory(path() + "/hints");
    std::ofstream(hint(name), std::ios::binary | std::ios::trunc) << bytes;
  }

  static std::uint64_t resident(const Region& region) { return region.memory_use().resident_bytes; }
  // A word of each chunk. Not one after the other, so that nothing is read ahead.
  static void touch(const Region& region, const std::vector<std::uint64_t>& chunks) {
    for (const std::uint64_t chunk : chunks) {
      ASSERT_EQ(word_at(region, chunk * kWorkingSetChunk + kPage),
                mix(chunk * kWorkingSetChunk + kPage))
          << chunk;
    }
  }
  static void expect_prefetched(const Region& region, std::uint64_t chunks) {
    EXPECT_TRUE(comes_true([&] { return resident(region) >= chunks * kWorkingSetChunk; }))
        << resident(region) / kWorkingSetChunk << " of " << chunks;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(resident(region), chunks * kWorkingSetChunk);
  }
  // Long enough for the thread to have begun.
  static void expect_nothing_prefetched(const Region& region) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(resident(region), 0U);
  }
  static void expect_content(const Region& region) {
    for (std::uint64_t at = 0; at < kWorkingSetSize; at += 8)
      ASSERT_EQ(word_at(region, at), mix(at)) << at;
  }
};

const std::vector<std::uint64_t> kSome = {200, 7, 90, 3, 255, 131, 0, 60};

TEST_P(WorkingSets, AVersionOpensWithThePagesOfItsLastUse) {
  Store store = filled();
  {
    Region first = store.open_version("s", remembering());
    expect_nothing_prefetched(first);
    touch(first, kSome);
  }
  ASSERT_TRUE(stdfs::exists(hint("s")));
  Region second = store.open_version("s", remembering());
  expect_prefetched(second, kSome.size());
  expect_content(second);
}

TEST_P(WorkingSets, ABranchHasAWorkingSetToo) {
  Store store = filled();
  {
    Region first = store.open_region("main", remembering());
    touch(first, kSome);
    word_at(first, 40 * kWorkingSetChunk) = 1;
    first.commit();
  }
  Region second = store.open_region("main", remembering());
  EXPECT_TRUE(
      comes_true([&] { return resident(second) >= (kSome.size() + 1) * kWorkingSetChunk; }));
  EXPECT_EQ(word_at(second, 40 * kWorkingSetChunk), 1U);
  word_at(second, 40 * kWorkingSetChunk) = mix(40 * kWorkingSetChunk);
  expect_content(second);
  EXPECT_EQ(second.commit().pages_changed, 1U);
  EXPECT_EQ(content_of(second), content_of(store, "s"));
}

// A page that is only prefetched or read is not written.
TEST_P(WorkingSets, PrefetchedPagesAreNotDirty) {
  Store store = filled();
  {
    Region first = store.open_region("main", remembering());
    touch(first, kSome);
  }
  Region second = store.open_region("main", remembering());
  expect_prefetched(second, kSome.size());
  touch(second, {7, 3});
  EXPECT_EQ(second.commit().pages_dirty, 0U);
  word_at(second, 90 * kWorkingSetChunk + 5 * kPage) = 5;
  word_at(second, 131 * kWorkingSetChunk) = 6;
  const CommitReport report = second.commit();
  EXPECT_EQ(report.pages_dirty, 2U);
  EXPECT_EQ(report.pages_changed, 2U);
  word_at(second, 255 * kWorkingSetChunk) = 7;
  second.rollback();
  EXPECT_EQ(word_at(second, 255 * kWorkingSetChunk), mix(255 * kWorkingSetChunk));
  EXPECT_EQ(content_of(second), content_of(store, "main"));
}

// A chunk that was prefetched and not touched is removed from the set. One that was touched stays,
// although it was loaded without a fault.
TEST_P(WorkingSets, UntouchedPagesAreForgotten) {
  for (const bool writable : {false, true}) {
    SCOPED_TRACE(writable ? "branch" : "version");
    TempDirectory place;
    Store store = Store::create(place / "store");
    {
      Region region = store.create_region("main", kWorkingSetSize, options());
      for (std::uint64_t at = 0; at < kWorkingSetSize; at += 8) word_at(region, at) = mix(at);
      region.snapshot("s");
    }
    const auto open = [&] {
      return writable ? store.open_region("main", remembering())
                      : store.open_version("s", remembering());
    };
    {
      Region first = open();
      touch(first, kSome);
    }
    {
      Region second = open();
      expect_prefetched(second, kSome.size());
      if (writable) second.commit();
      touch(second, {3, 131, 90, 20});
      if (writable) word_at(second, 3 * kWorkingSetChunk) = mix(3 * kWorkingSetChunk);
      if (writable) second.commit();
    }
    {
      Region third = open();
      expect_prefetched(third, 4);
      // These need it mapped: they count as a use.
      third.prefetch({90 * kWorkingSetChunk, 1});
      const Pin pin = third.pin({20 * kWorkingSetChunk, kPage});
    }
    Region fourth = open();
    expect_prefetched(fourth, 2);
    expect_content(fourth);
  }
}

TEST_P(WorkingSets, APinnedPageTakesSystemCalls) {
  Store store = filled();
  {
    Region first = store.open_version("s", remembering());
    touch(first, kSome);
  }
  Region second = store.open_version("s", remembering());
  expect_prefetched(second, kSome.size());
  second.prefetch({60 * kWorkingSetChunk, kWorkingSetChunk});
  const Pin pin = second.pin({7 * kWorkingSetChunk, kWorkingSetChunk});
  for (const std::uint64_t chunk : {7U, 60U}) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const std::byte* const at = bytes_of(second) + chunk * kWorkingSetChunk;
    EXPECT_EQ(write(ends[1], at, kPage), static_cast<ssize_t>(kPage)) << chunk;
    close(ends[0]);
    close(ends[1]);
  }
}

// Chunks are loaded in their first order: beyond half of the limit, the rest is not loaded.
TEST_P(WorkingSets, PagesAreLoadedInOrderOfFirstUseUpToHalfOfTheLimit) {
  Store store = filled();
  std::vector<std::uint64_t> order;
  for (std::uint64_t i = 0; i < kChunks; ++i) order.push_back(i * 37 % kChunks);
  {
    Region first = store.open_version("s", remembering());
    touch(first, order);
  }
  Region second = store.open_version("s", remembering(4 * kMiB));
  constexpr std::uint64_t kHalf = 2 * kMiB / kWorkingSetChunk;
  expect_prefetched(second, kHalf);
  EXPECT_EQ(second.memory_use().evicted_bytes, 0U);
  second.close();
  // Nothing of it was touched.
  second = store.open_version("s", remembering());
  expect_nothing_prefetched(second);
  touch(second, order);
  second.close();
  second = store.open_version("s", remembering(4 * kMiB));
  expect_prefetched(second, kHalf);
  touch(second, {order.begin(), order.begin() + kHalf});
  EXPECT_EQ(resident(second), kHalf * kWorkingSetChunk) << "these and no others";
}

TEST_P(WorkingSets, EvictedPagesCountUnderALimit) {
  Store store = filled();
  std::vector<std::uint64_t> many;
  for (std::uint64_t i = 0; i < 100; ++i) many.push_back(i * 37 % kChunks);
  {
    Region first = store.open_region("main", remembering(2 * kMiB));
    touch(first, many);
    for (const std::uint64_t chunk : many) word_at(first, chunk * kWorkingSetChunk + 8) = chunk;
    EXPECT_GT(first.memory_use().evicted_bytes, 0U);
    first.commit();
  }
  Region second = store.open_region("main", remembering());
  expect_prefetched(second, many.size());
  for (const std::uint64_t chunk : many)
    ASSERT_EQ(word_at(second, chunk * kWorkingSetChunk + 8), chunk);
  second.close();
  // Prefetched chunks are evicted as others are, and used ones are recorded.
  second = store.open_region("main", remembering(4 * kMiB));
  EXPECT_TRUE(comes_true([&] { return resident(second) >= 2 * kMiB; }));
  for (std::uint64_t i = 0; i < kChunks; ++i) word_at(second, i * kWorkingSetChunk + 16) = i;
  EXPECT_LE(resident(second), 4 * kMiB + kMiB);
  second.commit();
  EXPECT_EQ(content_of(second), content_of(store, "main"));
  for (std::uint64_t i = 0; i < kChunks; ++i)
    ASSERT_EQ(word_at(second, i * kWorkingSetChunk + 16), i);
}

// Writers, and commits, while chunks are prefetched under a limit.
TEST_P(WorkingSets, PrefetchingDuringWritesLosesNothing) {
  Store store = filled();
  std::vector<std::uint64_t> model(kWorkingSetSize / 8);
  for (std::uint64_t i = 0; i < model.size(); ++i) model[i] = mix(i * 8);
  std::mt19937_64 random(3);
  for (int round = 0; round < 12; ++round) {
    Region region = store.open_region("main", remembering(round % 2 == 0 ? 0 : 6 * kMiB));
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t, seed = random()] {
        std::mt19937_64 mine(seed);
        for (int i = 0; i < 1500; ++i) {
          const std::uint64_t at = mine() % (model.size() / 3) * 3 + t;
          if (at >= model.size()) continue;
          if (mine() % 2 == 0) {
            EXPECT_EQ(word_at(region, at * 8), model[at]) << at;
          } else {
            model[at] = word_at(region, at * 8) = mine();
          }
        }
      });
    }
    for (int i = 0; i < 4; ++i) region.commit();
    for (auto& thread : threads) thread.join();
    region.commit();
    if (round % 4 == 3) {
      for (std::uint64_t i = 0; i < model.size(); ++i) ASSERT_EQ(word_at(region, i * 8), model[i]);
    }
    region.close();
    const auto content = content_of(store, "main");
    ASSERT_EQ(std::memcmp(content.data(), model.data(), kWorkingSetSize), 0) << round;
  }
}

TEST_P(WorkingSets, PrefetchRunsDuringGrowAndRollback) {
  Store store = filled();
  {
    Region first = store.open_region("main", remembering());
    touch(first, kSome);
    first.grow(kWorkingSetSize + 5 * kPage);
    word_at(first, kWorkingSetSize + 4 * kPage) = 4;
    first.commit();
  }
  for (int round = 0; round < 6; ++round) {
    Region region = store.open_region("main", remembering());
    touch(region, kSome);
    EXPECT_EQ(word_at(region, kWorkingSetSize + 4 * kPage), 4U);
    if (round % 2 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      region.grow(kWorkingSetSize + 2 * kMiB);
      EXPECT_TRUE(all_zero(bytes_of(region) + kWorkingSetSize + 5 * kPage, 2 * kMiB - 5 * kPage));
      word_at(region, kWorkingSetSize + kMiB) = 9;
      word_at(region, kWorkingSetSize + 4 * kPage) = 5;
      region.rollback();
    }
    EXPECT_EQ(region.size_bytes(), kWorkingSetSize + 5 * kPage);
    EXPECT_EQ(word_at(region, kWorkingSetSize + 4 * kPage), 4U);
  }
}

// Zeros need no loading.
TEST_P(WorkingSets, ZeroPagesAreNotRecorded) {
  Store store = create();
  {
    Region region = store.create_region("main", 4096 * kMiB, remembering());
    word_at(region, 0) = 1;
    word_at(region, 4000 * kMiB) = 2;
    region.snapshot("s");
  }
  Region again = store.open_region("main", remembering());
  expect_prefetched(again, 2);
  EXPECT_EQ(word_at(again, 0), 1U);
  EXPECT_EQ(word_at(again, 4000 * kMiB), 2U);
}

TEST_P(WorkingSets, AVersionLoadsOnlyItsOwnWorkingSet) {
  Store store = filled();
  {
    Region first = store.open_version("s", remembering());
    touch(first, kSome);
  }
  // Another version.
  store.create_snapshot("t", "main");
  {
    const Region other = store.open_version("t", remembering());
    expect_nothing_prefetched(other);
  }
  // Another version's file has its name.
  stdfs::copy_file(hint("s"), hint("t"), stdfs::copy_options::overwrite_existing);
  {
    Region main = store.open_region("main", options());
    word_at(main, 0) = 1;
    main.commit();
  }
  store.remove_snapshot("t");
  EXPECT_FALSE(stdfs::exists(hint("t")));
  store.create_snapshot("t", "main");
  stdfs::copy_file(hint("s"), hint("t"));
  {
    const Region other = store.open_version("t", remembering());
    expect_nothing_prefetched(other);
  }
  // A branch that was created again.
  {
    Region main = store.open_region("main", remembering());
    touch(main, {9, 90});
  }
  const std::string hint_of_main = bytes_of_hint("main");
  store.remove_branch("main");
  EXPECT_FALSE(stdfs::exists(hint("main")));
  store.create_branch("main", "s");
  write_hint("main", hint_of_main);
  Region again = store.open_region("main", remembering());
  expect_nothing_prefetched(again);
}

TEST_P(WorkingSets, WithoutTheOptionNoWorkingSetIsUsed) {
  Store store = filled();
  {
    Region first = store.open_version("s", options());
    touch(first, kSome);
  }
  EXPECT_FALSE(stdfs::exists(path() + "/hints"));
  {
    Region first = store.open_version("s", remembering());
    touch(first, kSome);
  }
  const std::string before = bytes_of_hint("s");
  {
    Region second = store.open_version("s", options());
    expect_nothing_prefetched(second);
    touch(second, {1});
  }
  EXPECT_EQ(bytes_of_hint("s"), before);
}

TEST_P(WorkingSets, ACorruptedWorkingSetIsIgnoredAndReplaced) {
  Store store = filled();
  {
    Region first = store.open_version("s", remembering());
    touch(first, kSome);
  }
  const std::string good = bytes_of_hint("s");
  std::string flipped = good;
  flipped[good.size() / 2] ^= 1;
  for (const std::string& bad : {std::string(), good.substr(0, good.size() - 1), flipped,
                                 std::string(100'000, '\xff'), good + "x"}) {
    write_hint("s", bad);
    EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
    Region region = store.open_version("s", remembering());
    expect_nothing_prefetched(region);
    touch(region, kSome);
    region.close();
    EXPECT_EQ(bytes_of_hint("s"), good);
  }
  // Something else is in its place.
  stdfs::remove(hint("s"));
  stdfs::create_directory(hint("s"));
  {
    Region region = store.open_version("s", remembering());
    expect_nothing_prefetched(region);
  }
  EXPECT_TRUE(stdfs::is_directory(hint("s")));
  store.collect_garbage();
  store.remove_snapshot("s");
}

TEST_P(WorkingSets, AReadOnlyStoreKeepsNoWorkingSet) {
  Store store = filled();
  {
    Region first = store.open_version("s", remembering());
    touch(first, kSome);
  }
  const std::string before = bytes_of_hint("s");
  // For root, too: a file is in the way of the directory, or it is closed to others.
  stdfs::permissions(path() + "/hints", stdfs::perms::owner_read | stdfs::perms::owner_exec);
  {
    Region second = store.open_version("s", remembering());
    expect_prefetched(second, kSome.size());
    expect_content(second);
  }
  if (geteuid() != 0) {
    EXPECT_EQ(bytes_of_hint("s"), before);
  }
  stdfs::permissions(path() + "/hints", stdfs::perms::owner_all);
  stdfs::remove_all(path() + "/hints");
  std::ofstream(path() + "/hints") << "a file";
  {
    Region third = store.open_version("s", remembering());
    expect_nothing_prefetched(third);
    touch(third, kSome);
  }
  EXPECT_TRUE(stdfs::is_regular_file(path() + "/hints"));
  store.collect_garbage();
  store.remove_snapshot("s");
}

TEST_P(WorkingSets, TheLastOfTwoReadersCounts) {
  Store store = filled();
  Region one = store.open_version("s", remembering());
  Region two = store.open_version("s", remembering());
  touch(one, kSome);
  touch(two, {1, 100});
  one.close();
  two.close();
  Region again = store.open_version("s", remembering());
  expect_prefetched(again, 2);
}

TEST_P(WorkingSets, AForkedChildWritesNoWorkingSet) {
  Store store = filled();
  Region region = store.open_version("s", remembering());
  touch(region, kSome);
  const pid_t child = fork();
  if (child == 0) {
    region = Region();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(stdfs::exists(hint("s")));
  region.close();
  EXPECT_TRUE(stdfs::exists(hint("s")));
}

class MappedWorkingSets : public WorkingSets {};

TEST_P(MappedWorkingSets, AMappedRegionRecordsNoWorkingSet) {
  Store store = filled();
  {
    Region region = store.open_region("main", remembering());
    touch(region, kSome);
  }
  EXPECT_FALSE(stdfs::exists(path() + "/hints"));
}

VELLUM_PAGED_ENGINES(WorkingSets);
INSTANTIATE_TEST_SUITE_P(, MappedWorkingSets, testing::Values(Engine::mapped), engine_test_name);

}  // namespace
}  // namespace vellum::test
