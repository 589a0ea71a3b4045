// PrivatePages: each way finds the written pages of a private mapping.
#include "memory/kernel/private_pages.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "base/temp_directory.hpp"

namespace vellum::region::test {
namespace {

using format::PageNumber;
using Pages = std::vector<PageNumber>;
using Way = PrivatePages::Way;

constexpr std::size_t kPrivatePagesPages = 4096;
constexpr std::size_t kBytes = kPrivatePagesPages * format::kPageBytes;

class FileMapping : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const std::string path = directory_ / "file";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0);
    const std::vector<std::byte> content(kBytes / 2, std::byte{7});  // followed by a hole
    ASSERT_EQ(pwrite(fd_, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
    ASSERT_EQ(ftruncate(fd_, kBytes), 0);
    void* const map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, 0);
    ASSERT_NE(map, MAP_FAILED);
    base_ = static_cast<std::byte*>(map);
    pages_ = std::make_unique<PrivatePages>(base_, kBytes, GetParam());
    if (pages_->way() != GetParam()) GTEST_SKIP() << "this kernel does not offer it";
  }
  void TearDown() override {
    pages_.reset();
    if (base_ != nullptr) munmap(base_, kBytes);
    if (fd_ >= 0) close(fd_);
  }

  void write(PageNumber page, int value = 1) {
    base_[page * format::kPageBytes + 8] = static_cast<std::byte>(value);
  }
  std::byte read(PageNumber page) const {
    return *static_cast<volatile std::byte*>(base_ + page * format::kPageBytes);
  }
  Pages collect(PageNumber end = kPrivatePagesPages, PageNumber first = 0) {
    Pages out;
    pages_->collect(first, end, out);
    return out;
  }
  bool forgets() const { return GetParam() == Way::written; }

  vellum::test::TempDirectory directory_;
  int fd_ = -1;
  std::byte* base_ = nullptr;
  std::unique_ptr<PrivatePages> pages_;
};

TEST_P(FileMapping, AReadPageIsNotReported) {
  EXPECT_TRUE(collect().empty());
  for (PageNumber page = 0; page < kPrivatePagesPages; ++page) read(page);
  EXPECT_TRUE(collect().empty());
  madvise(base_, kBytes, MADV_DONTNEED);
  EXPECT_TRUE(collect().empty());
}

TEST_P(FileMapping, WrittenPagesAreFound) {
  const Pages written = {0, 1, 511, 512, 2047, 2048, 4095};
  for (PageNumber page = 0; page < kPrivatePagesPages; page += 2) read(page);
  for (const PageNumber page : written) write(page);
  EXPECT_EQ(collect(), written);
  EXPECT_EQ(collect(), forgets() ? Pages{} : written);
  write(511, 2);
  EXPECT_EQ(collect(), forgets() ? Pages{511} : written);
  write(600);
  write(4095, 3);
  EXPECT_EQ(collect(4095), forgets() ? Pages{600} : Pages({0, 1, 511, 512, 600, 2047, 2048}));
  write(511, 4);
  EXPECT_EQ(collect(600, 511), forgets() ? Pages{511} : Pages({511, 512})) << "starting at a page";
  EXPECT_EQ(collect(), forgets() ? Pages{4095} : Pages({0, 1, 511, 512, 600, 2047, 2048, 4095}));
}

TEST_P(FileMapping, DroppedPagesHaveTheFilesContent) {
  write(5);
  write(6);
  collect();
  write(7);
  madvise(base_ + 5 * format::kPageBytes, 3 * format::kPageBytes, MADV_DONTNEED);
  EXPECT_TRUE(collect().empty());
  EXPECT_EQ(read(6), std::byte{7});
  write(6);
  EXPECT_EQ(collect(), Pages{6});
}

TEST_P(FileMapping, NoWriteDuringCollectionIsLost) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> rounds{0};
  std::thread writer([&] {
    for (std::uint64_t round = 1; !stop; ++round) {
      for (PageNumber page = 3; page < kPrivatePagesPages; page += 61) {
        auto* const at = reinterpret_cast<std::uint64_t*>(base_ + page * format::kPageBytes);
        std::atomic_ref(*at).store(round, std::memory_order_relaxed);
      }
      rounds = round;
    }
  });
  std::vector<std::uint64_t> seen(kPrivatePagesPages);
  const auto look = [&] {
    for (const PageNumber page : collect()) {
      auto* const at = reinterpret_cast<std::uint64_t*>(base_ + page * format::kPageBytes);
      seen[page] = std::atomic_ref(*at).load(std::memory_order_relaxed);
    }
  };
  while (rounds < 300) look();
  stop = true;
  writer.join();
  look();
  for (PageNumber page = 3; page < kPrivatePagesPages; page += 61)
    EXPECT_EQ(seen[page], rounds) << page;
}

std::string way_name(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::written ? "written" : info.param == Way::scan ? "scan" : "pagemap";
}
INSTANTIATE_TEST_SUITE_P(, FileMapping, testing::Values(Way::written, Way::scan, Way::pagemap),
                         way_name);

}  // namespace
}  // namespace vellum::region::test
