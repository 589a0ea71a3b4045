// collect_dirty(): every dirty page, and hardly any other.
#include <random>
#include <set>

#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

class Dirty : public MemoryTest {};

TEST_P(Dirty, AFreshRegionHasNoDirtyPage) {
  const auto memory = make(64 * kMiB);
  EXPECT_TRUE(collect(*memory).empty());
}

TEST_P(Dirty, WrittenPagesAreReportedOnce) {
  const auto memory = make(16 * kMiB);
  const std::vector<PageNumber> written = {0, 1, 17, 511, 512, 2000, 4095};
  for (const PageNumber page : written) page_at(*memory, page)[5] = std::byte{1};
  const auto first = collect(*memory);
  for (const PageNumber page : written) EXPECT_TRUE(contains(first, page)) << page;
  EXPECT_EQ(collect(*memory), found_again(written));
}

TEST_P(Dirty, AReadMakesNoPageDirty) {
  const auto memory = make(16 * kMiB);
  for (PageNumber page = 0; page < 4096; ++page) ASSERT_EQ(page_at(*memory, page)[0], std::byte{0});
  collect(*memory);  // may report pages that were filled just before
  for (PageNumber page = 0; page < 4096; ++page) ASSERT_EQ(page_at(*memory, page)[0], std::byte{0});
  EXPECT_TRUE(collect(*memory).empty());
}

TEST_P(Dirty, ArmedPagesAreReportedExactlyInEachRound) {
  const auto memory = make(16 * kMiB);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(0, 4096, failure));
  collect(*memory);
  std::mt19937_64 random(1);
  std::set<PageNumber> written;
  for (int round = 0; round < 50; ++round) {
    if (!vellum::test::finds_written_pages_again(GetParam())) written.clear();
    for (int i = 0; i < 40; ++i) {
      // Far apart: engine sigsegv opens a whole chunk with the second page of it.
      const PageNumber page = random() % 256 * kChunkPages;
      page_at(*memory, page)[random() % kPageBytes] = static_cast<std::byte>(random());
      written.insert(page);
    }
    EXPECT_EQ(collect(*memory), std::vector<PageNumber>(written.begin(), written.end()));
  }
}

TEST_P(Dirty, RandomWritesAreAllFound) {
  constexpr PageNumber kPages = 3000;
  const auto memory = make(kPages * kPageBytes);
  std::mt19937_64 random(2);
  std::vector<std::byte> committed(kPages * kPageBytes);
  for (int round = 0; round < 60; ++round) {
    const auto writes = random() % 300;
    for (std::uint64_t i = 0; i < writes; ++i) {
      const std::size_t at = random() % (kPages * kPageBytes - 8000);
      const std::size_t length = random() % 50 == 0 ? random() % 8000 : 1 + random() % 8;
      std::memset(memory->data() + at, static_cast<int>(random()), length);
    }
    for (const PageNumber page : collect(*memory)) {
      std::memcpy(committed.data() + page * kPageBytes, page_at(*memory, page), kPageBytes);
    }
    if (round % 10 == 9) {
      ASSERT_EQ(std::memcmp(committed.data(), memory->data(), committed.size()), 0) << round;
    }
  }
}

TEST_P(Dirty, PagesOfTheLastPartialChunkOrTableAreReported) {
  for (const std::uint64_t pages : {1U, 5U, 17U, 513U, 1030U}) {
    const auto memory = make(pages * kPageBytes, 64 * kMiB);
    page_at(*memory, pages - 1)[4095] = std::byte{1};
    EXPECT_TRUE(contains(collect(*memory), pages - 1)) << pages;
    page_at(*memory, pages - 1)[4095] = std::byte{2};
    EXPECT_TRUE(contains(collect(*memory), pages - 1)) << pages;
  }
}

VELLUM_BOTH_ENGINES(Dirty);

}  // namespace
}  // namespace vellum::region::test
