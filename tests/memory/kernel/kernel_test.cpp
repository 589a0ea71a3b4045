// The kernel's reports on pages, in cases that are easily misread.
#include "memory/kernel/kernel.hpp"
#include "memory/kernel/support.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "support/engines.hpp"

namespace vellum::region::test {
namespace {

constexpr std::size_t kKernelPageBytes = 4096;

// Pages of a private mapping, tracked as engine uffd does.
class KernelPages : public testing::Test {
 protected:
  void SetUp() override {
    if (kernel_support().tracking != Tracking::asynchronous) GTEST_SKIP() << "needs Linux 6.7";
    uffd_ = open_userfaultfd(Tracking::asynchronous);
    memfd_ = memfd_create("pages", MFD_CLOEXEC);
    pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    ASSERT_TRUE(uffd_ >= 0 && memfd_ >= 0 && pagemap_ >= 0);
    ASSERT_EQ(ftruncate(memfd_, static_cast<off_t>(kBytes)), 0);
    void* const map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd_, 0);
    ASSERT_NE(map, MAP_FAILED);
    base_ = static_cast<std::byte*>(map);
    ASSERT_EQ(register_range(uffd_, base_, kBytes, true), 0);
    ASSERT_EQ(map_zero_pages(uffd_, base_, kBytes), 0);
  }
  void TearDown() override {
    if (base_ != nullptr) munmap(base_, kBytes);
    for (const int fd : {uffd_, memfd_, pagemap_}) {
      if (fd >= 0) close(fd);
    }
  }
  void write_to(std::size_t page) {
    *static_cast<volatile std::byte*>(base_ + page * kKernelPageBytes) = std::byte{1};
  }

  static constexpr std::size_t kPages = 4096, kBytes = kPages * kKernelPageBytes;
  int uffd_ = -1, memfd_ = -1, pagemap_ = -1;
  std::byte* base_ = nullptr;
};

// The kernel copies 512 ranges at a time, and then reports the end of the last of these as its
// position. A scan that continues there would find concurrently written pages a second time.
TEST_F(KernelPages, AScanOfManyRangesEndsAtItsEnd) {
  std::vector<ScanRange> ranges(8192);
  std::byte* resume = nullptr;
  ASSERT_GE(scan_written(pagemap_, base_, base_ + kBytes, ranges, resume), 0);
  for (std::size_t page = 0; page < kPages; page += 2) write_to(page);
  EXPECT_EQ(scan_written(pagemap_, base_, base_ + kBytes, ranges, resume),
            static_cast<long>(kPages / 2));
  EXPECT_EQ(resume, base_ + kBytes);
}

TEST_F(KernelPages, AScanThatFillsItsRangesResumesWhereItStopped) {
  std::vector<ScanRange> ranges(700);
  std::byte* resume = base_;
  while (resume < base_ + kBytes) {
    ASSERT_GE(scan_written(pagemap_, resume, base_ + kBytes, ranges, resume), 0);
  }
  for (std::size_t page = 0; page < kPages; page += 2) write_to(page);
  std::size_t next = 0;
  for (std::byte* at = base_; at < base_ + kBytes; at = resume) {
    const long n = scan_written(pagemap_, at, base_ + kBytes, ranges, resume);
    ASSERT_GE(n, 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i, next += 2) {
      ASSERT_EQ(ranges[i].begin, reinterpret_cast<std::uintptr_t>(base_ + next * kKernelPageBytes));
    }
  }
  EXPECT_EQ(next, kPages);
}

TEST_F(KernelPages, PrivatePagesAreCountedWithoutZerosAndHoles) {
  std::vector<ScanRange> ranges(8192);
  for (const std::size_t page : {3U, 64U, 65U, 4000U}) write_to(page);
  std::byte* resume = nullptr;
  ASSERT_GE(scan_written(pagemap_, base_, base_ + kBytes, ranges, resume), 0);  // leaves markers
  EXPECT_EQ(count_private(pagemap_, base_, base_ + kBytes), 4);
  std::uint64_t mask = 0;
  EXPECT_EQ(find_private(pagemap_, base_ + 64 * kKernelPageBytes, 16, false, mask), 0);
  EXPECT_EQ(mask, 3U);
}

TEST_F(KernelPages, MovedPagesLeaveHolesThatCanBeFilled) {
  write_to(5);
  void* const place = mmap(nullptr, 16 * kKernelPageBytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  auto* const to = static_cast<std::byte*>(place);
  ASSERT_EQ(move_private(base_, 16 * kKernelPageBytes, to), 0);
  EXPECT_EQ(to[5 * kKernelPageBytes], std::byte{1});
  EXPECT_EQ(count_private(pagemap_, base_, base_ + 16 * kKernelPageBytes), 0);
  const std::vector<std::byte> content(kKernelPageBytes, std::byte{7});
  EXPECT_EQ(copy_pages(uffd_, base_ + 5 * kKernelPageBytes, kKernelPageBytes, content.data()), 0);
  EXPECT_EQ(base_[5 * kKernelPageBytes + 99], std::byte{7});
  munmap(place, 16 * kKernelPageBytes);
}

}  // namespace
}  // namespace vellum::region::test
