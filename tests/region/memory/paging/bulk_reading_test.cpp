// A version that is read at many places is loaded as a whole, automatically and by prefetch().
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "support/child.hpp"
#include "support/paging.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kWideSize = 24 * kMiB;
constexpr std::uint64_t kWideChunk = 64u << 10;
constexpr std::size_t kWideChunks = kWideSize / kWideChunk;
constexpr std::size_t kWideZeroChunks = 2 * kMiB / kWideChunk;  // the last ones
constexpr std::size_t kWideSign = 16;  // faults, for a version of this size

class WideReading : public StoreTest {
 protected:
  // Snapshots "0" to "5"; each changes a word of every third page and some pages wholly, so that
  // pages have delta chains and are scattered over many records. The last 2 MiB are zero.
  void SetUp() override {
    StoreTest::SetUp();
    Store store = create();
    Region region = store.create_region("main", kWideSize, options());
    const std::uint64_t filled = kWideSize - 2 * kMiB;
    std::mt19937_64 random(3);
    for (std::uint64_t at = 0; at < filled; at += 8) word_at(region, at) = random() >> 42;
    region.snapshot("0");
    for (int step = 1; step <= 5; ++step) {
      for (std::uint64_t page = static_cast<std::uint64_t>(step); page < filled / kPage; page += 3)
        word_at(region, page * kPage + random() % 512 * 8) = random();
      for (int i = 0; i < 200; ++i) {
        const std::uint64_t page = random() % (filled / kPage);
        for (std::uint64_t at = 0; at < kPage; at += 8)
          word_at(region, page * kPage + at) = random() >> 42;
      }
      region.snapshot(std::to_string(step));
    }
  }
  RegionOptions with_limit(std::uint64_t bytes) const {
    RegionOptions o = options();
    o.memory_limit_bytes = bytes;
    return o;
  }
  static std::uint64_t resident(const Region& region) { return region.memory_use().resident_bytes; }
  // In random order, so that nothing is read ahead.
  static std::vector<std::size_t> shuffled_chunks(std::uint64_t seed) {
    std::vector<std::size_t> chunks(kWideChunks);
    std::iota(chunks.begin(), chunks.end(), std::size_t{0});
    std::shuffle(chunks.begin(), chunks.end(), std::mt19937_64(seed));
    return chunks;
  }
  static void touch(const Region& region, std::size_t chunk) {
    const volatile std::uint64_t& word = word_at(region, chunk * kWideChunk + kPage);
    [[maybe_unused]] const std::uint64_t read = word;
  }
  // Faults at some places, no two of them neighbours.
  static void touch_places(const Region& region, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) touch(region, i * 37 % (kWideChunks - kWideZeroChunks));
  }
  static bool chunk_equals(const Region& region, const std::vector<std::byte>& content,
                           std::size_t chunk) {
    return std::memcmp(bytes_of(region) + chunk * kWideChunk, content.data() + chunk * kWideChunk,
                       kWideChunk) == 0;
  }
};

TEST_P(WideReading, FewSingleReadsStartNoBulkLoad) {
  Store store = Store::open(path());
  Region region = store.open_version("5", options());
  touch_places(region, kWideSign - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(resident(region), (kWideSign - 1) * kWideChunk);
}

TEST_P(WideReading, ReadsAtManyPlacesStartABulkLoad) {
  Store store = Store::open(path());
  Region region = store.open_version("5", options());
  touch_places(region, kWideSign + 1);
  EXPECT_TRUE(comes_true([&] { return resident(region) == kWideSize - 2 * kMiB; }))
      << resident(region);
  EXPECT_EQ(content_of(region), content_of(store, "5"));
}

TEST_P(WideReading, EveryVersionIsReadCorrectly) {
  Store store = Store::open(path());
  for (const std::string name : {"0", "1", "3", "5", "main"}) {
    const auto content = content_of(store, name);
    Region region = store.open_version(name, options());
    for (const std::size_t chunk : shuffled_chunks(7)) {
      ASSERT_TRUE(chunk_equals(region, content, chunk)) << name << " " << chunk;
    }
  }
}

TEST_P(WideReading, ThreadsOfTheProgramReadDuringABulkLoad) {
  Store store = Store::open(path());
  const auto content = content_of(store, "4");
  for (int round = 0; round < rounds(5, 2); ++round) {
    Region region = store.open_version("4", options());
    std::atomic<std::size_t> wrong{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (const std::size_t chunk : shuffled_chunks(t)) {
          if (!chunk_equals(region, content, chunk)) ++wrong;
        }
      });
    }
    if (round % 2 != 0) region.prefetch(region.whole());
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(wrong, 0U);
  }
}

TEST_P(WideReading, ClosingEndsABulkLoad) {
  Store store = Store::open(path());
  for (int round = 0; round < rounds(20, 5); ++round) {
    Region region = store.open_version("5", options());
    touch_places(region, kWideSign + static_cast<std::size_t>(round % 3));
    region.close();
  }
}

TEST_P(WideReading, ABulkLoadUsesAtMostHalfOfTheLimit) {
  constexpr std::uint64_t kLimit = 16 * kMiB;
  Store store = Store::open(path());
  const auto content = content_of(store, "5");
  Region region = store.open_version("5", with_limit(kLimit));
  touch_places(region, kWideSign + 1);
  EXPECT_TRUE(comes_true([&] { return resident(region) >= kLimit / 2 - 2 * kMiB; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(resident(region), kLimit / 2 + (kWideSign + 1) * kWideChunk);
  EXPECT_EQ(region.memory_use().evicted_bytes, 0U);
  for (const std::size_t chunk : shuffled_chunks(5)) {
    ASSERT_TRUE(chunk_equals(region, content, chunk)) << chunk;
    ASSERT_LE(resident(region), kLimit + 4 * kWideChunk);
  }
}

TEST_P(WideReading, AdviceRandomPreventsBulkLoads) {
  Store store = Store::open(path());
  Region region = store.open_version("5", options());
  region.advise(region.whole(), Advice::random);
  touch_places(region, 2 * kWideSign);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(resident(region), 2 * kWideSign * kWideChunk);
}

TEST_P(WideReading, BulkLoadsWithSmallAndLargeFaults) {
  Store store = Store::open(path());
  const auto content = content_of(store, "5");
  for (const std::uint32_t fault_bytes : {4096U, 262'144U}) {
    RegionOptions small = options();
    small.fault_bytes = fault_bytes;
    Region region = store.open_version("5", small);
    for (const std::size_t chunk : shuffled_chunks(9)) {
      ASSERT_TRUE(chunk_equals(region, content, chunk)) << fault_bytes << " " << chunk;
    }
  }
}

// It records the touched pages, and loads only those.
TEST_P(WideReading, AWorkingSetExcludesBulkLoads) {
  RegionOptions remembering = options();
  remembering.working_set = true;
  Store store = Store::open(path());
  {
    Region region = store.open_version("5", remembering);
    touch_places(region, 2 * kWideSign);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(resident(region), 2 * kWideSign * kWideChunk);
    region.close();
  }
  Region again = store.open_version("5", remembering);
  EXPECT_TRUE(comes_true([&] { return resident(again) == 2 * kWideSign * kWideChunk; }));
  touch_places(again, 2 * kWideSign);
  EXPECT_EQ(resident(again), 2 * kWideSign * kWideChunk);
}

TEST_P(WideReading, PrefetchLoadsAllWithinTheLimit) {
  Store store = Store::open(path());
  const auto content = content_of(store, "5");
  Region whole = store.open_version("5", options());
  whole.prefetch(whole.whole());
  EXPECT_GE(resident(whole), kWideSize - 2 * kMiB);
  EXPECT_EQ(content_of(whole), content);
  Region part = store.open_version("5", options());
  part.prefetch({5 * kMiB + 100, 9 * kMiB});
  EXPECT_GE(resident(part), 9 * kMiB);
  EXPECT_LE(resident(part), 9 * kMiB + 2 * kWideChunk);
  constexpr std::uint64_t kMaxThreads = 64;  // each loads a chunk before it counts
  Region limited = store.open_version("5", with_limit(8 * kMiB));
  limited.prefetch(limited.whole());
  EXPECT_LE(resident(limited), 8 * kMiB + kMaxThreads * kWideChunk);
  EXPECT_EQ(content_of(limited), content);
}

// In any order, overlapping, empty, few or many: these pages are loaded, and no others.
TEST_P(WideReading, PrefetchOfRangesLoadsOnlyThese) {
  Store store = Store::open(path());
  const auto content = content_of(store, "5");
  Region few = store.open_version("5", options());
  few.prefetch(std::vector<ByteRange>{});
  EXPECT_EQ(resident(few), 0U);
  few.prefetch(std::vector<ByteRange>{{9 * kMiB + 5, 1}, {kMiB, kPage}, {kMiB + 8, 8}, {0, 0}});
  EXPECT_EQ(resident(few), 2 * kWideChunk);
  Region many = store.open_version("5", options());
  std::vector<ByteRange> ranges;
  for (const std::size_t chunk : shuffled_chunks(3)) {
    const std::uint64_t at = chunk * kWideChunk;
    if (chunk % 2 == 0) ranges.push_back({at + kPage, std::min(4 * kPage, kWideSize - at)});
  }
  many.prefetch(ranges);
  EXPECT_EQ(resident(many), (kWideSize - 2 * kMiB) / 2);
  EXPECT_EQ(content_of(many), content);
  Region wide = store.open_version("5", options());
  wide.prefetch(std::vector<ByteRange>{{12 * kMiB, 5 * kMiB}, {0, 4 * kMiB}});
  EXPECT_EQ(resident(wide), 9 * kMiB);
  EXPECT_ERRC(wide.prefetch(std::vector<ByteRange>{{5 * kMiB, 1}, {kWideSize, 1}}),
              Errc::invalid_argument);
  EXPECT_EQ(resident(wide), 9 * kMiB);
  EXPECT_EQ(content_of(wide), content);
  Region limited = store.open_version("5", with_limit(8 * kMiB));
  limited.prefetch(std::vector<ByteRange>{limited.whole(), {kMiB, kMiB}});
  EXPECT_EQ(content_of(limited), content);
}

// A loader meets a corrupted record in silence. A touch of its pages ends the process, as before.
TEST_P(WideReading, ABulkLoadSkipsCorruptedRecords) {
  const auto content = content_of(Store::open(path()), "0");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
    if (entry.path().extension() != ".pack") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kMiB));
    file.write("corrupted", 9);
  }
  Store store = Store::open(path());
  std::vector<bool> readable(kWideChunks, true);
  {
    Region region = store.open_version("0", options());
    EXPECT_ERRC(region.prefetch(region.whole()), Errc::corrupted);
    for (std::size_t chunk = 0; chunk < kWideChunks; ++chunk) {
      try {
        region.prefetch({chunk * kWideChunk, kWideChunk});
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::corrupted);
        readable[chunk] = false;
      }
    }
  }
  const auto count = std::count(readable.begin(), readable.end(), false);
  ASSERT_TRUE(count > 0 && count < 5) << count;
  const auto end = run_child([&] {
    Region region = Store::open(path()).open_version("0", options());
    for (const std::size_t chunk : shuffled_chunks(2)) {
      if (readable[chunk]) require(chunk_equals(region, content, chunk), std::to_string(chunk));
    }
    std::fputs("all others are right", stderr);
    const auto corrupted = std::find(readable.begin(), readable.end(), false) - readable.begin();
    touch(region, static_cast<std::size_t>(corrupted));
  });
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("all others are right"), std::string::npos);
}

VELLUM_PAGED_ENGINES(WideReading);

}  // namespace
}  // namespace vellum::test
