// Regions larger than the memory they may use: nothing is lost, and the limit is kept.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <tuple>

#include "support/paging.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kPagingSize = 24 * kMiB;
constexpr std::uint64_t kPagingLimit = 4 * kMiB;
constexpr std::uint64_t kPagingWords = kPagingSize / 8;

using Parameter = std::tuple<Engine, std::uint32_t>;  // fault_bytes

class Paging : public EngineTestWith<Parameter> {
 protected:
  void SetUp() override {
    if (!engine_available(std::get<0>(GetParam()))) GTEST_SKIP() << kNoUffd;
  }
  RegionOptions options() const {
    RegionOptions o;
    std::tie(o.engine, o.fault_bytes) = GetParam();
    o.capacity_bytes = 256 * kMiB;
    return o;
  }
  static std::uint32_t fault_bytes() {
    const std::uint32_t bytes = std::get<1>(GetParam());
    return bytes == 0 ? 64u << 10 : bytes;
  }
  std::string path() const { return directory_ / "store"; }
  Region open(Store& store, const std::string& name = "main", std::uint64_t limit = kPagingLimit) {
    RegionOptions o = options();
    o.memory_limit_bytes = limit;
    return store.open_or_create_region(name, kPagingSize, o);
  }
  Store make() { return Store::create(path()); }
  static std::uint64_t* words(const Region& region) {
    return static_cast<std::uint64_t*>(region.data());
  }
  TempDirectory directory_;
};

TEST_P(Paging, StoresInATouchedRegionStay) {
  Store store = make();
  Region region = open(store);
  for (std::uint64_t i = 0; i < kPagingWords; ++i) words(region)[i] = mix(i);
  for (std::uint64_t i = 0; i < kPagingWords; ++i) ASSERT_EQ(words(region)[i], mix(i)) << i;
  const auto use = region.memory_use();
  EXPECT_GT(use.evicted_bytes, 2 * kPagingSize - 2 * kPagingLimit);
  EXPECT_GT(use.spill_written_bytes, kPagingSize - kPagingLimit);
  EXPECT_LE(use.resident_bytes, kPagingLimit + kPagingLimit / 4);  // it is checked every 2 ms
}

TEST_P(Paging, ACommitTakesPagesOfTheSpillFile) {
  Store store = make();
  {
    Region region = open(store);
    for (std::uint64_t i = 0; i < kPagingWords; ++i) words(region)[i] = mix(i);
    EXPECT_GT(region.memory_use().spilled_pages, (kPagingSize - kPagingLimit) / kPage / 2);
    region.snapshot("all");
    EXPECT_EQ(region.memory_use().spilled_pages, 0U);
    // Small changes, everywhere.
    for (std::uint64_t i = 0; i < kPagingWords; i += 512) words(region)[i] = i;
    region.snapshot("some");
    for (std::uint64_t i = 0; i < kPagingWords; ++i) {
      ASSERT_EQ(words(region)[i], i % 512 == 0 ? i : mix(i)) << i;
    }
  }
  for (const char* name : {"all", "some"}) {
    const auto content = content_of(store, name);
    const auto* w = reinterpret_cast<const std::uint64_t*>(content.data());
    for (std::uint64_t i = 0; i < kPagingWords; ++i) {
      ASSERT_EQ(w[i], name[0] == 's' && i % 512 == 0 ? i : mix(i)) << name << " " << i;
    }
  }
}

TEST_P(Paging, AChangedWordCostsLittleInTheSpillFile) {
  Store store = make();
  Region region = open(store);
  for (std::uint64_t i = 0; i < kPagingWords; ++i) words(region)[i] = mix(i);
  region.commit();
  const auto before = region.memory_use().spill_written_bytes;
  for (std::uint64_t i = 0; i < kPagingWords; i += 512) ++words(region)[i];
  for (std::uint64_t i = 0; i < kPagingWords; i += 512) ASSERT_EQ(words(region)[i], mix(i) + 1);
  const auto written = region.memory_use().spill_written_bytes - before;
  EXPECT_LT(written, kPagingSize / 64);
}

TEST_P(Paging, RollbackDiscardsTheSpillFile) {
  Store store = make();
  Region region = open(store);
  for (std::uint64_t i = 0; i < kPagingWords; i += 64) words(region)[i] = mix(i);
  region.commit();
  for (std::uint64_t i = 0; i < kPagingWords; i += 64) words(region)[i] = 5;
  for (std::uint64_t i = 1; i < kPagingWords; i += 640) words(region)[i] = 6;
  EXPECT_GT(region.memory_use().spilled_pages, 0U);
  region.rollback();
  EXPECT_EQ(region.memory_use().spilled_pages, 0U);
  for (std::uint64_t i = 0; i < kPagingWords; ++i) {
    ASSERT_EQ(words(region)[i], i % 64 == 0 ? mix(i) : 0) << i;
  }
}

TEST_P(Paging, PagesCutOffByARollbackAreFreed) {
  Store store = make();
  Region region = store.create_region("main", kMiB, options());
  words(region)[0] = 1;
  region.commit();
  const auto before = region.memory_use().resident_bytes;
  for (int i = 0; i < 3; ++i) {
    region.grow(9 * kMiB);
    for (std::uint64_t at = kMiB; at < 9 * kMiB; at += kPage) {
      ASSERT_EQ(word_at(region, at), 0U);
      if (at % (64 * kPage) == 0) word_at(region, at) = at;
    }
    region.rollback();
    EXPECT_EQ(region.size_bytes(), kMiB);
    EXPECT_LE(region.memory_use().resident_bytes, before + (64u << 10));
  }
}

TEST_P(Paging, ASnapshotIsReadWithinTheLimit) {
  Store store = make();
  {
    Region region = open(store, "main", 0);
    for (std::uint64_t i = 0; i < kPagingWords; ++i) words(region)[i] = mix(i);
    region.snapshot("s");
  }
  RegionOptions o = options();
  o.memory_limit_bytes = kPagingLimit;
  const Region old = store.open_version("s", o);
  std::mt19937_64 random(1);
  const int reads = static_cast<int>(std::min((1u << 30) / fault_bytes(), 20'000u));
  for (int i = 0; i < reads; ++i) {
    const std::uint64_t at = random() % kPagingWords;
    ASSERT_EQ(words(old)[at], mix(at));
  }
  for (std::uint64_t i = 0; i < kPagingWords; ++i) ASSERT_EQ(words(old)[i], mix(i));
  const auto use = old.memory_use();
  EXPECT_LE(use.resident_bytes, kPagingLimit + kPagingLimit / 16);
  EXPECT_EQ(use.spill_written_bytes, 0U);
  EXPECT_GT(use.evicted_bytes, kPagingSize);
}

TEST_P(Paging, PinnedPagesStay) {
  Store store = make();
  Region region = open(store);
  words(region)[0] = 1;
  const Pin pin = region.pin({0, kMiB});
  for (std::uint64_t i = 0; i < kPagingWords; ++i) words(region)[i] = mix(i);
  const int fd = ::open("/dev/zero", O_WRONLY);
  EXPECT_EQ(::write(fd, region.data(), kMiB), static_cast<ssize_t>(kMiB)) << strerror(errno);
  ::close(fd);
}

// Each thread owns every fourth word, and knows its last stores.
TEST_P(Paging, ThreadsWriteWhileCommitsAndEvictionsGoOn) {
  constexpr int kThreads = 4;
  const int last = fault_bytes() == 64u << 10 ? rounds(8, 4) : rounds(4, 3);
  Store store = make();
  Region region = open(store);
  std::vector<std::vector<std::uint64_t>> model(
      kThreads, std::vector<std::uint64_t>(kPagingWords / kThreads));
  for (int round = 0; round < last; ++round) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(static_cast<std::uint64_t>(round * kThreads + t));
        auto& mine = model[static_cast<std::size_t>(t)];
        for (int i = 0; i < 3000; ++i) {
          const std::uint64_t at = random() % mine.size();
          std::uint64_t& word = words(region)[at * kThreads + static_cast<std::uint64_t>(t)];
          wrong += word != mine[at];
          if (i % 2 == 0) word = mine[at] = random();
        }
      });
    }
    region.commit();
    if (round % 5 == 4) region.snapshot("s" + std::to_string(round));
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(wrong, 0) << round;
  }
  region.commit();
  region = Region();
  const auto content = content_of(store, "main");
  const auto* w = reinterpret_cast<const std::uint64_t*>(content.data());
  for (std::uint64_t i = 0; i < kPagingWords; ++i) {
    ASSERT_EQ(w[i], model[i % kThreads][i / kThreads]) << i;
  }
}

TEST(FaultBytes, OnlyPowersOfTwoInRangeAreAccepted) {
  const TempDirectory directory;
  Store store = Store::create(directory / "store");
  for (const std::uint32_t bytes : {1U, 2048U, 12288U, 512U << 10}) {
    RegionOptions o;
    o.fault_bytes = bytes;
    expect_error(Errc::invalid_argument, {"fault_bytes", std::to_string(bytes)},
                 [&] { store.create_region("main", kMiB, o); });
  }
}

std::string paging_name(const testing::TestParamInfo<Parameter>& info) {
  const auto& [engine, fault_bytes] = info.param;
  return std::string(engine_name(engine)) + "_" +
         (fault_bytes == 0 ? "default" : std::to_string(fault_bytes));
}

std::vector<std::uint32_t> fault_sizes() {
  if (kSanitizer) return {0, 256u << 10};  // the most pages that a word has bits for
  return {0, 4096, 256u << 10};
}

// The kernel takes care of engine mapped.
INSTANTIATE_TEST_SUITE_P(, Paging,
                         testing::Combine(testing::ValuesIn(kPagedEngines),
                                          testing::ValuesIn(fault_sizes())),
                         paging_name);

}  // namespace
}  // namespace vellum::test
