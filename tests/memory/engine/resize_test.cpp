// resize(): new pages are zero and tracked, pages past the end are forgotten and not accessible.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory_fixture.hpp"
#include "support/child.hpp"

namespace vellum::region::test {
namespace {

using vellum::test::run_child;

class Resize : public MemoryTest {};

TEST_P(Resize, ARegionGrowsByAnyNumberOfPages) {
  const auto memory = make(kPageBytes, 8 * kMiB);
  page_at(*memory, 0)[0] = std::byte{1};
  PageNumber old = 1;
  for (const PageNumber pages : {2U, 5U, 16U, 20U, 33U, 511U, 512U, 514U, 2000U, 2048U}) {
    memory->resize(pages * kPageBytes);
    EXPECT_EQ(memory->size_bytes(), pages * kPageBytes);
    EXPECT_TRUE(all_bytes(page_at(*memory, old), (pages - old) * kPageBytes, 0)) << pages;
    collect(*memory);
    std::memset(page_at(*memory, old), 1, (pages - old) * kPageBytes);
    const auto dirty = collect(*memory);
    for (PageNumber page = old; page < pages; ++page) {
      EXPECT_TRUE(contains(dirty, page)) << page << " of " << pages;
    }
    EXPECT_TRUE(all_bytes(page_at(*memory, old), (pages - old) * kPageBytes, 1)) << pages;
    old = pages;
  }
}

TEST_P(Resize, NewPagesOfAPresentChunkServeSystemCalls) {
  const auto memory = make(3 * kPageBytes, 2 * kMiB);
  page_at(*memory, 2)[0] = std::byte{1};
  memory->resize(12 * kPageBytes);
  std::vector<std::byte> buffer(kPageBytes);
  const int fd = memfd_create("sink", MFD_CLOEXEC);
  store::ReadFailure failure;
  ASSERT_TRUE(memory->make_present(0, 12, failure));
  for (PageNumber page = 0; page < 12; ++page) {
    EXPECT_EQ(syscall(SYS_pwrite64, fd, page_at(*memory, page), kPageBytes, 0),
              static_cast<long>(kPageBytes))
        << page << ": " << strerror(errno);
  }
  close(fd);
}

TEST_P(Resize, ShrinkingForgetsPagesAfterDiscard) {
  const auto memory = make(10 * kPageBytes, 8 * kMiB);
  std::memset(memory->data(), 4, 10 * kPageBytes);
  commit(*memory);
  for (const PageNumber pages : {12U, 40U, 600U}) {
    memory->resize(pages * kPageBytes);
    std::memset(memory->data(), 6, pages * kPageBytes);
    memory->discard(collect(*memory));
    memory->resize(10 * kPageBytes);
    EXPECT_TRUE(all_bytes(memory->data(), 10 * kPageBytes, 4)) << pages;
    memory->resize(pages * kPageBytes);
    EXPECT_TRUE(all_bytes(memory->data(), 10 * kPageBytes, 4)) << pages;
    EXPECT_TRUE(all_bytes(page_at(*memory, 10), (pages - 10) * kPageBytes, 0)) << pages;
    memory->resize(10 * kPageBytes);
  }
}

TEST_P(Resize, AnAccessPastTheEndFaults) {
  const auto memory = make(5 * kPageBytes, 8 * kMiB);
  memory->data()[0] = std::byte{1};
  const auto access = [&](PageNumber page) {
    return run_child([this, page] {
      const auto fresh = make(5 * kPageBytes, 8 * kMiB);
      fresh->resize(9 * kPageBytes);
      fresh->data()[8 * kPageBytes] = std::byte{1};
      fresh->discard(collect(*fresh));
      fresh->resize(5 * kPageBytes);
      volatile std::byte* at = page_at(*fresh, page);
      [[maybe_unused]] const std::byte seen = *at;
    });
  };
  EXPECT_CHILD_EXIT(access(4), 0);
  for (const PageNumber page : {5U, 8U, 9U, 16U, 600U, 2047U})
    EXPECT_CHILD_SIGNAL(access(page), SIGSEGV);
}

VELLUM_BOTH_ENGINES(Resize);

}  // namespace
}  // namespace vellum::region::test
