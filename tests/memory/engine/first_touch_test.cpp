// Pages are filled at the first access, for any size of the region and order of accesses.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "memory/memory_fixture.hpp"

namespace vellum::region::test {
namespace {

class FirstTouch : public MemoryTest {};

TEST_P(FirstTouch, AFreshPageReadsAsZero) {
  const auto memory = make(4 * kMiB);
  for (const PageNumber page : {0U, 1U, 15U, 16U, 511U, 512U, 513U, 1023U}) {
    EXPECT_TRUE(all_bytes(page_at(*memory, page), kPageBytes, 0)) << page;
  }
}

TEST_P(FirstTouch, PagesAroundAWriteAreZero) {
  const auto memory = make(4 * kMiB);
  for (const PageNumber page : {7U, 600U, 1023U}) {
    page_at(*memory, page)[100] = std::byte{9};
    EXPECT_TRUE(all_bytes(page_at(*memory, page), 100, 0));
    EXPECT_EQ(page_at(*memory, page)[100], std::byte{9});
    EXPECT_TRUE(all_bytes(page_at(*memory, page) + 101, kPageBytes - 101, 0));
  }
}

TEST_P(FirstTouch, RegionsOfEverySizeInPagesAreFilled) {
  for (const std::uint64_t pages :
       {1U, 2U, 15U, 16U, 17U, 31U, 33U, 511U, 512U, 513U, 527U, 528U, 1025U}) {
    const auto memory = make(pages * kPageBytes);
    for (PageNumber page = 0; page < pages; ++page) {
      ASSERT_EQ(page_at(*memory, page)[4095], std::byte{0}) << page << " of " << pages;
    }
    for (PageNumber page = pages; page-- > 0;) page_at(*memory, page)[1] = std::byte{3};
    for (PageNumber page = 0; page < pages; ++page) {
      ASSERT_EQ(page_at(*memory, page)[1], std::byte{3}) << page << " of " << pages;
    }
  }
}

TEST_P(FirstTouch, RegionsStartAtAMultipleOf2MiB) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(make(kPageBytes)->data()) % kTableBytes, 0u);
}

TEST_P(FirstTouch, ConcurrentFaultsAreServedOnce) {
  constexpr std::size_t kThreads = 8;
  constexpr std::uint64_t kPages = 2048;
  const auto memory = make(kPages * kPageBytes);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (PageNumber page = 0; page < kPages; ++page) {
        page_at(*memory, page)[t] = static_cast<std::byte>(page + t);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (PageNumber page = 0; page < kPages; ++page) {
    for (std::size_t t = 0; t < kThreads; ++t) {
      ASSERT_EQ(page_at(*memory, page)[t], static_cast<std::byte>(page + t)) << page;
    }
  }
}

// A system call cannot raise the signal that fills a page, so every page of a present chunk must be
// mapped, including pages where an earlier scan has left markers.
TEST_P(FirstTouch, PresentChunksServeSystemCallsAfterAScan) {
  constexpr std::uint64_t kPages = 600;
  const auto memory = make(kPages * kPageBytes);
  const int fd = memfd_create("sink", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  // Every other chunk, so that the scans below pass holes.
  for (PageNumber page = 0; page < kPages; page += 2 * kChunkPages) {
    store::ReadFailure failure;
    ASSERT_TRUE(memory->make_present(page, 1, failure)) << failure.reason;
    collect(*memory);
  }
  for (int round = 0; round < 3; ++round) {
    store::ReadFailure failure;
    ASSERT_TRUE(memory->make_present(0, kPages, failure)) << failure.reason;
    for (PageNumber page = 0; page < kPages; ++page) {
      ASSERT_EQ(syscall(SYS_pwrite64, fd, page_at(*memory, page), kPageBytes, 0),
                static_cast<long>(kPageBytes))
          << "page " << page << ": " << strerror(errno);
    }
    collect(*memory);
  }
  close(fd);
}

VELLUM_BOTH_ENGINES(FirstTouch);

}  // namespace
}  // namespace vellum::region::test
