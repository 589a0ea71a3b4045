// Versions in huge pages: the same content, within the limit, and reported as huge by the kernel.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <random>

#include "support/child.hpp"
#include "support/paging.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kHuge = 2 * kMiB;
constexpr std::uint64_t kHugePagesSize = 8 * kMiB;
constexpr std::uint64_t kHugePagesChunk = 64u << 10;
#ifndef MADV_COLLAPSE
constexpr int MADV_COLLAPSE = 25;
#endif

// Whether the kernel supports huge pages of a memfd.
bool kernel_can() {
  const int memfd = memfd_create("probe", MFD_CLOEXEC);
  if (memfd < 0 || ftruncate(memfd, kHuge) != 0) return false;
  auto* const room = static_cast<std::byte*>(
      mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  auto* const at = room + (kHuge - reinterpret_cast<std::uintptr_t>(room) % kHuge) % kHuge;
  void* const map = mmap(at, kHuge, PROT_READ, MAP_PRIVATE | MAP_FIXED, memfd, 0);
  const std::vector<char> content(kHuge, 'x');
  const bool can = map != MAP_FAILED && pwrite(memfd, content.data(), kHuge, 0) == kHuge &&
                   madvise(map, kHuge, MADV_COLLAPSE) == 0;
  munmap(room, 2 * kHuge);
  close(memfd);
  return can;
}

// The bytes in huge pages of the region's range, as smaps reports them (proc_pid_smaps(5)).
std::uint64_t huge_bytes(const Region& region) {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<std::uintptr_t>(region.data());
  std::uint64_t bytes = 0;
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t from = 0, to = 0;
    std::uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      inside = from >= begin && from < begin + region.size_bytes();
    } else if (inside && (std::sscanf(line.c_str(), "ShmemPmdMapped: %lu", &kib) == 1 ||
                          std::sscanf(line.c_str(), "FilePmdMapped: %lu", &kib) == 1)) {
      bytes += kib << 10;
    }
  }
  return bytes;
}

class HugePages : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped()) return;
    if (!kernel_can()) GTEST_SKIP() << "this kernel makes no huge pages of a memfd's";
    store_.emplace(create());
    Region region = store_->create_region("main", kHugePagesSize, options());
    std::mt19937_64 random(1);
    // The third 2 MiB have a chunk of zeros.
    for (std::uint64_t at = 0; at < kHugePagesSize; at += 8) {
      if (at / kHugePagesChunk != 2 * kHuge / kHugePagesChunk + 5)
        word_at(region, at) = random() % 1000 + 1;
    }
    region.snapshot("s");
    expected_ = content_of(region);
  }
  Region open(std::uint64_t limit_bytes = 0) {
    RegionOptions o = options();
    o.huge_pages = true;
    o.memory_limit_bytes = limit_bytes;
    return store_->open_version("s", o);
  }

  // The kernel may refuse temporarily; the next call tries again.
  static bool becomes_huge(const Region& version, ByteRange range, std::uint64_t bytes) {
    return comes_true([&] {
      version.prefetch(range);
      return huge_bytes(version) == bytes;
    });
  }

  std::optional<Store> store_;
  std::vector<std::byte> expected_;
};

TEST_P(HugePages, RangesWithoutZerosBecomeHuge) {
  const Region version = open();
  EXPECT_TRUE(becomes_huge(version, {0, kHugePagesSize}, kHugePagesSize - kHuge));
  EXPECT_EQ(content_of(version), expected_);
  version.prefetch({0, kHugePagesSize});
  version.advise({0, kHugePagesSize}, Advice::dont_need);
  EXPECT_EQ(content_of(version), expected_);
  EXPECT_EQ(huge_bytes(version), kHugePagesSize - kHuge) << "they stay";
}

TEST_P(HugePages, PagesCutByTheRangeStaySmall) {
  const Region version = open();
  EXPECT_TRUE(becomes_huge(version, {kPage, kHugePagesSize / 2}, kHuge)) << "the second 2 MiB only";
  EXPECT_EQ(content_of(version), expected_);
}

TEST_P(HugePages, HugePagesUseAtMostHalfOfTheLimit) {
  const Region version = open(4 * kMiB);
  EXPECT_TRUE(becomes_huge(version, {0, kHugePagesSize}, kHuge));
  EXPECT_EQ(content_of(version), expected_);
  EXPECT_LE(version.memory_use().resident_bytes, 4 * kMiB + 256 * 1024);
}

// In a child, whose pager of the process is a new one.
TEST_P(HugePages, HugePagesOfAllRegionsUseAtMostHalfOfTheLimitNoTsan) {
  const auto end = run_child([&] {
    setenv("VELLUM_MEMORY_LIMIT", std::to_string(8 * kMiB).c_str(), 1);
    store_.emplace(Store::open(path()));
    const auto prefetched = [&](std::uint64_t huge) {
      Region version = open();
      if (!becomes_huge(version, {0, kHugePagesSize}, huge))
        throw std::runtime_error(std::to_string(huge_bytes(version)) + " bytes are huge");
      if (content_of(version) != expected_) throw std::runtime_error("another content");
      return version;
    };
    Region first = prefetched(2 * kHuge);
    const Region second = prefetched(0);
    first.close();
    prefetched(2 * kHuge);
  });
  EXPECT_TRUE(end.exited_with(0)) << testing::PrintToString(end);
}

TEST_P(HugePages, ABranchStaysInSmallPages) {
  RegionOptions o = options();
  o.huge_pages = true;
  const Region branch = store_->open_region("main", o);
  branch.prefetch({0, kHugePagesSize});
  EXPECT_EQ(huge_bytes(branch), 0U);
  word_at(branch, 0) = 1;
}

VELLUM_PAGED_ENGINES(HugePages);

}  // namespace
}  // namespace vellum::test
