// Scattered writes: engine sigsegv needs a mapping for each, and the kernel allows 65,530.
#include <fstream>

#include "memory/memory_fixture.hpp"
#include "support/sanitizers.hpp"

namespace vellum::region::test {
namespace {

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

class Islands : public MemoryTest {};

// NoTsan: TSan's runtime needs mappings of its own, and fails if it gets none.
TEST_P(Islands, MoreIslandsThanMappingsAreWritten_NoTsan) {
  if (vellum::test::kTsan) GTEST_SKIP() << "the runtime does not survive the mapping limit";
  constexpr std::size_t kIslands = 48'000;
  const auto memory = make(kIslands * kChunkBytes);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(0, kIslands * kChunkPages, failure));
  collect(*memory);
  for (int round = 1; round <= 2; ++round) {
    const auto value = static_cast<std::byte>(round);
    for (std::size_t i = 0; i < kIslands; ++i) memory->data()[i * kChunkBytes + 5000] = value;
    const auto dirty = collect(*memory);
    for (std::size_t i = 0; i < kIslands; ++i) {
      ASSERT_TRUE(contains(dirty, i * kChunkPages + 1)) << i;
      ASSERT_EQ(memory->data()[i * kChunkBytes + 5000], value) << i;
    }
  }
}

TEST_P(Islands, ScatteredFirstTouchesOfAHugeRegionAreServed_NoTsan) {
  if (vellum::test::kTsan) GTEST_SKIP() << "the runtime does not survive the mapping limit";
  constexpr std::uint64_t kIslands = 42'000;
  constexpr std::uint64_t kStride = 3 * kChunkBytes;
  const auto memory = make(kIslands * kStride);
  for (std::uint64_t i = 0; i < kIslands; ++i) memory->data()[i * kStride + 77] = std::byte{1};
  const auto dirty = collect(*memory);
  for (std::uint64_t i = 0; i < kIslands; ++i) {
    ASSERT_TRUE(contains(dirty, i * kStride / kPageBytes)) << i;
    ASSERT_EQ(memory->data()[i * kStride + 77], std::byte{1}) << i;
  }
  for (std::uint64_t i = 0; i < kIslands; ++i) memory->data()[i * kStride + 77] = std::byte{2};
  const auto again = collect(*memory);
  for (std::uint64_t i = 0; i < kIslands; ++i) {
    ASSERT_TRUE(contains(again, i * kStride / kPageBytes)) << i;
  }
}

TEST_P(Islands, CollectingJoinsTheirMappings) {
  constexpr PageNumber kPages = 32'768;
  const auto memory = make(kPages * kPageBytes);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(0, kPages, failure));
  collect(*memory);
  const std::size_t before = mappings();
  for (int round = 0; round < 3; ++round) {
    for (PageNumber page = 5; page < kPages; page += 16) page_at(*memory, page)[0] = std::byte{1};
    collect(*memory);
  }
  // There would be 2,048 mappings if they did not join; a few belong to the allocator and the
  // sanitizer.
  EXPECT_LE(mappings(), before + 256);
}

VELLUM_BOTH_ENGINES(Islands);

}  // namespace
}  // namespace vellum::region::test
