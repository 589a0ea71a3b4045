// System calls can use pinned pages, and the pages that they write are found.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

class Pinned : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    fd_ = memfd_create("data", MFD_CLOEXEC);
    const std::vector<std::byte> data(3 * kPageBytes, std::byte{6});
    ASSERT_EQ(write(fd_, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  }
  void TearDown() override {
    if (fd_ >= 0) close(fd_);
  }
  // The bare call: a sanitizer's wrapper of read(2) would access the memory before the call.
  long read_into(std::byte* at, std::size_t length_bytes) const {
    return syscall(SYS_pread64, fd_, at, length_bytes, 0);
  }

  int fd_ = -1;
};

TEST_P(Pinned, SystemCallsCanWritePinnedPagesInEachRound) {
  const auto memory = make(4 * kMiB);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(100, 3, failure));
  memory->pin(100, 3);
  for (int round = 0; round < 3; ++round) {
    std::memset(page_at(*memory, 100), 0, 3 * kPageBytes);
    collect(*memory);
    ASSERT_EQ(read_into(page_at(*memory, 100), 3 * kPageBytes), 3 * static_cast<long>(kPageBytes))
        << strerror(errno);
    const auto dirty = collect(*memory);
    for (PageNumber page = 100; page < 103; ++page) EXPECT_TRUE(contains(dirty, page)) << page;
    EXPECT_TRUE(all_bytes(page_at(*memory, 100), 3 * kPageBytes, 6));
  }
  memory->unpin(100, 3);
}

TEST_P(Pinned, WritesAfterUnpinAreFound) {
  const auto memory = make(4 * kMiB);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(20, 1, failure));
  memory->pin(20, 1);
  memory->pin(20, 1);
  memory->unpin(20, 1);
  collect(*memory);
  ASSERT_EQ(read_into(page_at(*memory, 20), kPageBytes), static_cast<long>(kPageBytes));
  memory->unpin(20, 1);
  EXPECT_TRUE(contains(collect(*memory), 20));
  page_at(*memory, 20)[1] = std::byte{1};
  EXPECT_TRUE(contains(collect(*memory), 20));
  EXPECT_EQ(collect(*memory), found_again({20}));
}

TEST_P(Pinned, PagesStayPinnedAfterDiscard) {
  const auto memory = make(4 * kMiB);
  std::memset(page_at(*memory, 40), 3, 2 * kPageBytes);
  commit(*memory);
  memory->pin(40, 4);
  std::memset(page_at(*memory, 40), 4, 4 * kPageBytes);
  memory->discard(collect(*memory));
  EXPECT_EQ(read_into(page_at(*memory, 41), 2 * kPageBytes), 2 * static_cast<long>(kPageBytes))
      << strerror(errno);
  EXPECT_TRUE(all_bytes(page_at(*memory, 40), kPageBytes, 3));
  EXPECT_TRUE(all_bytes(page_at(*memory, 41), 2 * kPageBytes, 6));
  memory->unpin(40, 4);
}

VELLUM_BOTH_ENGINES(Pinned);

}  // namespace
}  // namespace vellum::region::test
