// Address space costs nothing until it is touched.
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "memory/memory_fixture.hpp"
#include "support/sanitizers.hpp"

namespace vellum::region::test {
namespace {

constexpr std::uint64_t kTiB = 1ULL << 40;

std::uint64_t field_bytes(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(line.find(':') + 1)) * 1024;
  }
  return 0;
}

// Resident memory, page tables included; without pages of files, such as the program's own code.
std::uint64_t resident_bytes() {
  return field_bytes("RssAnon") + field_bytes("RssShmem") + field_bytes("VmPTE");
}

// What earlier tests left may go meanwhile.
std::uint64_t resident_bytes_since(std::uint64_t before) {
  return std::max(resident_bytes(), before) - before;
}

class Sparse : public MemoryTest {};

// NoSanitizer: shadow memory is resident memory, too.
TEST_P(Sparse, ATebibyteCostsWhatIsTouched_NoSanitizer) {
  if (vellum::test::kSanitizer) GTEST_SKIP() << "shadow memory counts as resident memory";
  const std::uint64_t before = resident_bytes();
  const auto memory = make(kTiB);
  // Engine mapped reads and writes its image through a buffer, of any region's size alike.
  const std::uint64_t buffer = GetParam() == Engine::mapped ? 4 * kMiB : 0;
  EXPECT_LT(resident_bytes_since(before), 2 * kMiB + buffer);
  constexpr std::uint64_t kTouches = 64;
  for (std::uint64_t i = 0; i < kTouches; ++i) {
    memory->data()[kTiB / kTouches * i + 12345] = std::byte{1};
  }
  EXPECT_EQ(collect(*memory).size() >= kTouches, true);
  // Each touch is far from the others: page tables of its own, in the region, in the tables beside
  // it, and in the backing.
  EXPECT_LT(resident_bytes_since(before), kTouches * 64 * 1024 + 4 * kMiB);
}

// NoTsan: it leaves 1.5 TiB of addresses for all mappings together.
TEST_P(Sparse, LookingForWritesCostsWhatIsTouched_NoTsan) {
  const auto memory = make(kTiB);
  memory->data()[kTiB - 1] = std::byte{1};
  collect(*memory);
  constexpr int kRounds = 20;
  auto least = std::chrono::steady_clock::duration::max();  // other rounds may have had to wait
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(collect(*memory), found_again({kTiB / kPageBytes - 1}));
    least = std::min(least, std::chrono::steady_clock::now() - start);
  }
  // Without PAGEMAP_SCAN, engine mapped reads 8 bytes for each page of the region.
  const bool by_pagemap = GetParam() == Engine::mapped && kernel_support().page_scan != 0;
  if (!by_pagemap) {
    EXPECT_LT(least, std::chrono::milliseconds(20));
  }
}

VELLUM_BOTH_ENGINES(Sparse);

}  // namespace
}  // namespace vellum::region::test
