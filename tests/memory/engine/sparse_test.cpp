// Address space costs nothing until it is accessed.
#include <unistd.h>

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

// Resident memory with page tables, without pages of files such as the program's own code.
std::uint64_t resident_bytes() {
  return field_bytes("RssAnon") + field_bytes("RssShmem") + field_bytes("VmPTE");
}

// Memory of earlier tests may be freed concurrently.
std::uint64_t resident_bytes_since(std::uint64_t before) {
  return std::max(resident_bytes(), before) - before;
}

class Sparse : public MemoryTest {};

// NoSanitizer: shadow memory is resident memory, too.
TEST_P(Sparse, OnlyAccessedPagesOfATebibyteCostMemory_NoSanitizer) {
  if (vellum::test::kSanitizer) GTEST_SKIP() << "shadow memory counts as resident memory";
  const std::uint64_t before = resident_bytes();
  const auto memory = make(kTiB);
  // Engine mapped reads and writes its image through a buffer, whatever the region's size.
  const std::uint64_t buffer = GetParam() == Engine::mapped ? 4 * kMiB : 0;
  EXPECT_LT(resident_bytes_since(before), 2 * kMiB + buffer);
  constexpr std::uint64_t kAccesses = 64;
  for (std::uint64_t i = 0; i < kAccesses; ++i) {
    memory->data()[kTiB / kAccesses * i + 12345] = std::byte{1};
  }
  EXPECT_EQ(collect(*memory).size() >= kAccesses, true);
  // The accesses are far apart, so each needs its own page tables: in the region, in its tables and
  // in the backing.
  EXPECT_LT(resident_bytes_since(before), kAccesses * 64 * 1024 + 4 * kMiB);
}

// NoTsan: TSan leaves 1.5 TiB of addresses for all mappings together. A scan of pages that were
// never accessed would create page tables: 2 GiB for a TiB.
TEST_P(Sparse, AScanForWritesVisitsOnlyAccessedPages_NoTsan) {
  const auto memory = make(kTiB);
  memory->data()[kTiB - 1] = std::byte{1};
  collect(*memory);
  const std::uint64_t before = resident_bytes();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(collect(*memory), found_again({kTiB / kPageBytes - 1}));
  }
  EXPECT_LT(resident_bytes_since(before), 16 * kMiB);
}

VELLUM_BOTH_ENGINES(Sparse);

}  // namespace
}  // namespace vellum::region::test
