// Regions have more than 2^32 pages, nearly all of them empty. Each page number past 32 bits is
// distinguished from the number in its low bits: in memory, in the spill file, in commits and on
// the disk.
#include <algorithm>
#include <functional>
#include <tuple>

#include "support/paging.hpp"
#include "support/sanitizers.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kTiB = 1ULL << 40;
constexpr std::uint64_t k4Gi = 1ULL << 32;
constexpr std::uint64_t kLargeRegionPages = 17 * kTiB / kPage;
constexpr std::uint64_t kLimit = 256u << 10;

using Parameter = std::tuple<Engine, std::uint32_t>;  // fault_bytes

// A memory limit that each of these pages exceeds, as its whole chunk is loaded.
class LargeRegionNoSanitizer : public EngineTestWith<Parameter> {
 protected:
  void SetUp() override {
    if (!engine_available(std::get<0>(GetParam()))) GTEST_SKIP() << kNoUffd;
    for (const std::uint64_t at : {k4Gi, kLargeRegionPages}) {
      for (std::uint64_t i = 1; i <= 16; ++i) pages_.push_back(at - i);
    }
    for (std::uint64_t i = 0; i < 16; ++i) pages_.push_back(k4Gi + i);
    for (std::uint64_t i = 0; i < 16; ++i) pages_.push_back(i);  // the low bits of these
    for (std::uint64_t i = 1; i <= 16; ++i) pages_.push_back(kLargeRegionPages - k4Gi - i);
    for (std::uint64_t i = 1; i < 100; ++i) pages_.push_back(i * (kLargeRegionPages / 100));
    std::sort(pages_.begin(), pages_.end());
    pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
  }
  Region open(Store& store) const {
    RegionOptions o;
    std::tie(o.engine, o.fault_bytes) = GetParam();
    o.capacity_bytes = kLargeRegionPages * kPage;
    o.memory_limit_bytes = kLimit;
    return store.open_or_create_region("main", kLargeRegionPages * kPage, o);
  }
  // Whole pages that compress to nothing, or a word of each.
  void write(const Region& region, std::uint64_t salt, bool whole) {
    for (const std::uint64_t page : pages_) {
      for (std::uint64_t at = 0; at < kPage; at += whole ? 8 : kPage) {
        word_at(region, page * kPage + at) = mix(page * 512 + at / 8 + salt);
      }
    }
  }
  void expect(const std::function<std::uint64_t(std::uint64_t)>& word, std::uint64_t salt) {
    for (const std::uint64_t page : pages_) {
      ASSERT_EQ(word(page * kPage), mix(page * 512 + salt)) << page;
      ASSERT_EQ(word(page * kPage + 8), mix(page * 512 + 1)) << page;
    }
  }
  void expect(const Region& region, std::uint64_t salt) {
    expect([&](std::uint64_t at) { return word_at(region, at); }, salt);
  }
  void expect(const Store& store, const std::string& version, std::uint64_t salt) {
    expect(
        [&](std::uint64_t at) {
          std::uint64_t word = 0;
          store.read(version, at, &word, sizeof word);
          return word;
        },
        salt);
  }

  std::vector<std::uint64_t> pages_;
  // ext4 has files of up to 16 TiB, which is not enough for an image.
  TempDirectory directory_{memory_directory()};
};

TEST_P(LargeRegionNoSanitizer, PagesPast32BitsAreDistinct) {
  Store store = Store::create(directory_ / "store");
  {
    Region region = open(store);
    write(region, 0, true);
    expect(region, 0);
    region.snapshot("whole");
    write(region, 7, false);
    expect(region, 7);
    region.commit();
    write(region, 8, false);
    region.rollback();
    expect(region, 7);
    write(region, 9, false);
    region.snapshot("words");
    expect(region, 9);
  }
  expect(open(store), 9);
  expect(store, "whole", 0);
  expect(store, "words", 9);
  const Region old = store.open_version("whole");
  expect(old, 0);
  std::vector<std::uint64_t> changed;
  store.diff("whole", "words", [&](const ByteRange& range) {
    if (changed.empty() || changed.back() != range.offset_bytes / kPage) {
      changed.push_back(range.offset_bytes / kPage);
    }
  });
  EXPECT_EQ(changed, pages_);
}

TEST_P(LargeRegionNoSanitizer, GcKeepsPagesPast32Bits) {
  Store store = Store::create(directory_ / "store");
  {
    Region region = open(store);
    write(region, 0, true);
    region.snapshot("whole");
    write(region, 7, false);
    region.snapshot("words");
  }
  store.remove_snapshot("whole");
  store.collect_garbage();
  expect(store, "words", 7);
  expect(open(store), 7);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

// Engine mapped has no chunks.
std::vector<Parameter> parameters() {
  std::vector<Parameter> out;
  for (const Engine engine : kEngines) {
    out.emplace_back(engine, 0);
    if (std::ranges::find(kPagedEngines, engine) != std::end(kPagedEngines))
      out.emplace_back(engine, 4096);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(, LargeRegionNoSanitizer, testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return std::string(engine_name(std::get<0>(info.param))) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace vellum::test
