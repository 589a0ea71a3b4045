// discard() restores the committed content of pages.
#include <sys/mman.h>

#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

class Discard : public MemoryTest {};

TEST_P(Discard, APageWithoutABaseCopyBecomesZero) {
  const auto memory = make(4 * kMiB);
  for (const PageNumber page : {0U, 3U, 700U}) page_at(*memory, page)[8] = std::byte{1};
  memory->discard(collect(*memory));
  EXPECT_TRUE(all_bytes(memory->data(), 4 * kMiB, 0));
}

TEST_P(Discard, APageGetsItsBaseCopy) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 7, 40 * kPageBytes);
  commit(*memory);
  std::memset(memory->data(), 8, 80 * kPageBytes);
  memory->discard(collect(*memory));
  EXPECT_TRUE(all_bytes(memory->data(), 40 * kPageBytes, 7));
  EXPECT_TRUE(all_bytes(memory->data() + 40 * kPageBytes, 40 * kPageBytes, 0));
}

TEST_P(Discard, DiscardedPagesAreWritableAndTracked) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 7, 40 * kPageBytes);
  commit(*memory);
  for (int round = 0; round < 5; ++round) {
    std::memset(memory->data() + 10 * kPageBytes, 9, 40 * kPageBytes);
    const auto dirty = collect(*memory);
    for (PageNumber page = 10; page < 50; ++page) EXPECT_TRUE(contains(dirty, page)) << page;
    memory->discard(dirty);
    EXPECT_TRUE(all_bytes(page_at(*memory, 10), 30 * kPageBytes, 7));
    EXPECT_TRUE(all_bytes(page_at(*memory, 40), 10 * kPageBytes, 0));
  }
}

// The kernel does not drop locked pages by MADV_DONTNEED.
TEST_P(Discard, LockedPagesAreDiscarded) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 7, 40 * kPageBytes);
  commit(*memory);
  if (mlock(memory->data(), 40 * kPageBytes) != 0) GTEST_SKIP() << "memory cannot be locked";
  std::memset(memory->data(), 8, 40 * kPageBytes);
  memory->discard(collect(*memory));
  EXPECT_TRUE(all_bytes(memory->data(), 40 * kPageBytes, 7));
}

TEST_P(Discard, OtherPagesKeepTheirContent) {
  const auto memory = make(4 * kMiB);
  std::memset(memory->data(), 5, 64 * kPageBytes);
  collect(*memory);
  memory->discard({3, 4, 20});
  for (PageNumber page = 0; page < 64; ++page) {
    const bool gone = page == 3 || page == 4 || page == 20;
    EXPECT_TRUE(all_bytes(page_at(*memory, page), kPageBytes, gone ? 0 : 5)) << page;
  }
}

VELLUM_BOTH_ENGINES(Discard);

}  // namespace
}  // namespace vellum::region::test
