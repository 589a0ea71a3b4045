// A huge region of which little is used is small and quick.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/paging.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kSparseTiB = 1ULL << 40;

class SparseRegion : public StoreTest {
 protected:
  RegionOptions options() const {
    RegionOptions options = StoreTest::options();
    options.capacity_bytes = 0;
    return options;
  }
};

// NoTsan: it leaves 1.5 TiB of addresses for all mappings together.
TEST_P(SparseRegion, ATebibyteWithAFewPages_NoTsan) {
  Store store = create();
  constexpr std::uint64_t kTouched = 40;
  const auto offset = [](std::uint64_t i) { return kSparseTiB / kTouched * i / 8 * 8; };
  {
    Region region = store.create_region("main", kSparseTiB, options());
    for (std::uint64_t i = 0; i < kTouched; ++i) word_at(region, offset(i)) = i + 1;
    region.snapshot("s");
    const auto start = vellum::test::processor_time();
    constexpr std::uint64_t kCommits = 20;
    for (std::uint64_t i = 0; i < kCommits; ++i) {
      word_at(region, offset(i)) += 100;
      region.commit();
    }
    // Without PAGEMAP_SCAN, engine mapped reads 8 bytes for each page of the region.
    const bool by_pagemap = GetParam() == Engine::mapped && region::kernel_support().page_scan != 0;
    if (!by_pagemap) {
      EXPECT_LT((vellum::test::processor_time() - start) / kCommits, std::chrono::milliseconds(50));
    }
  }
  EXPECT_LT(store.stat().stored_bytes, 4 * kMiB);
  Region region = store.open_region("main", options());
  Region version = store.open_version("s", options());
  for (std::uint64_t i = 0; i < kTouched; ++i) {
    EXPECT_EQ(word_at(region, offset(i)), i + 1 + (i < 20 ? 100 : 0));
    EXPECT_EQ(word_at(version, offset(i)), i + 1);
    EXPECT_EQ(word_at(version, offset(i) + kSparseTiB / kTouched / 2 / 8 * 8), 0u);
  }
  std::uint64_t pages = 0;
  const auto totals = store.diff("s", "main", [&](const ByteRange&) { ++pages; });
  EXPECT_EQ(totals.pages_different, 20u);
  EXPECT_EQ(pages, totals.ranges);
}

// A chunk of 64 KiB is loaded for a page; the rest of it is zeros, which take no memory before they
// are touched.
TEST_P(SparseRegion, ScatteredReadsUseMemoryForTouchedPages) {
  Store store = create();
  constexpr std::uint64_t kPages = 200, kApart = 10 * kMiB + 3 * kPage;
  Region region = store.create_region("main", kPages * kApart, options());
  for (std::uint64_t i = 0; i < kPages; ++i) word_at(region, i * kApart) = i + 1;
  region.snapshot("s");
  region.close();
  for (const char* name : {"s", "main"}) {
    Region again = std::string(name) == "s" ? store.open_version("s", options())
                                            : store.open_region("main", options());
    for (std::uint64_t i = 0; i < kPages; ++i) {
      ASSERT_EQ(word_at(again, i * kApart), i + 1);
      ASSERT_EQ(word_at(again, i * kApart + kPage), 0u);
    }
    if (again.writable()) {
      for (std::uint64_t i = 0; i < kPages; ++i) word_at(again, i * kApart + kPage) = i;
      EXPECT_EQ(again.commit().pages_changed, kPages - 1);
    } else {
      EXPECT_LE(again.memory_use().resident_bytes, 4 * kPages * kPage);
    }
  }
  for (std::uint64_t i = 0; i < kPages; ++i) {
    std::uint64_t word = 0;
    store.read("main", i * kApart + kPage, &word, sizeof word);
    EXPECT_EQ(word, i);
  }
}

// Shared memory that the process has mapped and touched, such as memfds.
std::uint64_t shared_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssShmem")) return std::stoull(line.substr(line.find(':') + 1)) << 10;
  }
  return 0;
}

// With engine sigsegv they take memory when they are read, which the kernel does not report.
TEST_P(SparseRegion, ZerosNextToPagesCountTowardsTheLimit) {
  constexpr std::uint64_t kBytes = 64 * kMiB, kChunk = 64u << 10, kLimit = 8 * kMiB;
  Store store = create();
  {
    Region region = store.create_region("main", kBytes, options());
    for (std::uint64_t at = 0; at < kBytes; at += kChunk) word_at(region, at) = at + 1;
    region.snapshot("s");
  }
  RegionOptions limited = options();
  limited.memory_limit_bytes = kLimit;
  const std::uint64_t before = shared_bytes();
  const Region region = store.open_version("s", limited);
  for (std::uint64_t at = 0; at < kBytes; at += kChunk) ASSERT_EQ(word_at(region, at), at + 1);
  for (std::uint64_t at = 0; at < kBytes; at += kPage) {
    ASSERT_EQ(word_at(region, at), at % kChunk == 0 ? at + 1 : 0);
  }
  // The pager's thread does so soon.
  for (int i = 0; i < 2000 && shared_bytes() - before > kLimit; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_LE(shared_bytes() - before, kLimit);
}

VELLUM_BOTH_ENGINES(SparseRegion);

}  // namespace
}  // namespace vellum::test
