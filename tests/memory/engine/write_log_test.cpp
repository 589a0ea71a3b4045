// The log of written pages, with a handler that does nothing else.
#include "memory/engine/write_log.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "memory/kernel/fault_router.hpp"
#include "memory/kernel/support.hpp"
#include "memory/memory_fixture.hpp"
#include "support/sanitizers.hpp"

namespace vellum::region::test {
namespace {

constexpr std::size_t kLogPages = 2048;

// A private mapping of a file in memory, all armed. ThreadSanitizer holds a lock of its own during
// an atomic store: in a handler of that store it would wait for itself.
class WriteLogNoTsan : public testing::Test, public FaultTarget {
 protected:
  void SetUp() override {
    if (kernel_support().synchronous != 0) GTEST_SKIP() << vellum::test::kNoUffd;
    uffd_ = open_userfaultfd(Tracking::synchronous);
    memfd_ = memfd_create("pages", MFD_CLOEXEC);
    const std::vector<std::byte> content(kBytes, std::byte{6});
    ASSERT_EQ(write(memfd_, content.data(), kBytes), static_cast<ssize_t>(kBytes));
    void* const map = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, memfd_, 0);
    ASSERT_NE(map, MAP_FAILED);
    base_ = static_cast<std::byte*>(map);
    ASSERT_EQ(register_range(uffd_, base_, kBytes, true), 0);
    ASSERT_EQ(arm(uffd_, base_, kBytes), 0);
    ASSERT_EQ(map_by_reading(base_, kBytes), 0);
    log_.emplace(uffd_, base_, kBytes, kChunkPages, counters_);
    add_route(base_, base_ + kBytes, this);
  }
  void TearDown() override {
    remove_route(this);
    if (base_ != nullptr) munmap(base_, kBytes);
    for (const int fd : {uffd_, memfd_}) {
      if (fd >= 0) close(fd);
    }
  }
  FaultResult on_fault(const Fault& fault) noexcept override {
    if (!fault.is_write) return FaultResult::not_ours;
    int error = 0;
    opened_ += log_->open(static_cast<PageNumber>(fault.address - base_) / kPageBytes, error);
    return error == 0 ? FaultResult::retry : FaultResult::lost;
  }

  void write_to(PageNumber page) { word(page, 0).fetch_add(1); }
  std::atomic_ref<std::uint64_t> word(PageNumber page, std::size_t at) const {
    return std::atomic_ref(reinterpret_cast<std::uint64_t*>(base_ + page * kPageBytes)[at]);
  }
  std::vector<PageNumber> take(PageNumber end = kLogPages) {
    std::vector<format::PageRange> ranges;
    log_->take(end, ranges);
    std::vector<PageNumber> pages;
    for (const auto& [first, count] : ranges) {
      for (PageNumber page = first; page < first + count; ++page) pages.push_back(page);
    }
    EXPECT_TRUE(std::is_sorted(pages.begin(), pages.end()));
    return pages;
  }
  // The bare call: a sanitizer's wrapper of read(2) would access the memory before the call.
  bool a_system_call_writes_to(PageNumber page) const {
    return syscall(SYS_pread64, memfd_, base_ + page * kPageBytes, 8, 0) == 8;
  }

  using Pages = std::vector<PageNumber>;
  static constexpr std::size_t kBytes = kLogPages * kPageBytes;
  int uffd_ = -1, memfd_ = -1;
  std::byte* base_ = nullptr;
  Counters counters_;
  std::optional<WriteLog> log_;
  std::atomic<int> opened_{0};
};

TEST_F(WriteLogNoTsan, AWrittenPageIsTakenOnce) {
  EXPECT_EQ(take(), Pages());
  for (const PageNumber page : Pages({3, 600, 2047})) write_to(page);
  write_to(3);
  EXPECT_EQ(opened_, 3) << "one fault for each page";
  EXPECT_EQ(take(), Pages({3, 600, 2047}));
  EXPECT_EQ(take(), Pages());
  write_to(600);
  EXPECT_EQ(take(), Pages({600}));
}

TEST_F(WriteLogNoTsan, WritesInOrderOpenTheRestOfTheirChunk) {
  for (PageNumber page = 16; page < 20; ++page) write_to(page);
  EXPECT_EQ(opened_, 3);
  for (PageNumber page = 20; page < 64; ++page) write_to(page);
  EXPECT_EQ(opened_, 5) << "one fault for each further chunk";
  EXPECT_EQ(take().size(), 48u);
  for (const PageNumber page : Pages({66, 64, 70, 65})) write_to(page);
  EXPECT_EQ(take(), Pages({64, 65, 66, 70}));
}

// Pages between taken ones may be armed with them; those of a pinned chunk may not.
TEST_F(WriteLogNoTsan, SystemCallsWriteToPinnedPages) {
  EXPECT_FALSE(a_system_call_writes_to(20));
  ASSERT_EQ(log_->pin(20, 1), 0);
  ASSERT_EQ(log_->pin(20, 1), 0);
  for (int round = 0; round < 3; ++round) {
    write_to(14);
    write_to(40);
    EXPECT_EQ(take().size(), 18u) << "all of the pinned chunk, and the others";
    EXPECT_TRUE(a_system_call_writes_to(20));
    EXPECT_FALSE(a_system_call_writes_to(14));
  }
  log_->unpin(20, 1);
  EXPECT_EQ(take().size(), 16u);
  log_->unpin(20, 1);
  EXPECT_EQ(take().size(), 16u) << "written by system calls since";
  EXPECT_EQ(take(), Pages());
  EXPECT_FALSE(a_system_call_writes_to(20));
}

TEST_F(WriteLogNoTsan, PagesBeyondTheEndAreTakenWhenItMoves) {
  write_to(700);
  write_to(500);
  EXPECT_EQ(take(600), Pages({500}));
  EXPECT_EQ(take(600), Pages());
  EXPECT_EQ(take(), Pages({700}));
}

TEST_F(WriteLogNoTsan, PlacedPagesAreNotedUntilTheyAreForgotten) {
  EXPECT_EQ(log_->place(500, 40, [](PageNumber, std::size_t) { return 0; }), 0);
  EXPECT_TRUE(log_->is_any_noted(496, 16));
  EXPECT_FALSE(log_->is_any_noted(480, 16));
  log_->forget(512, 16);
  Pages expected;
  for (PageNumber page = 500; page < 540; ++page) {
    if (page < 512 || page >= 528) expected.push_back(page);
  }
  EXPECT_EQ(take(), expected);
}

// Each thread takes now and then, as a commit does, and copies what it has taken. Then the copy has
// all that the thread has written before.
TEST_F(WriteLogNoTsan, ATakeFindsAllThatItsThreadHasWritten) {
  constexpr std::size_t kThreads = 6;
  std::vector<std::uint64_t> copy(kLogPages * kThreads);
  std::mutex taking;
  std::atomic<int> missed{0};
  const auto take_and_copy = [&] {
    for (const PageNumber page : take()) {
      for (std::size_t t = 0; t < kThreads; ++t) copy[page * kThreads + t] = word(page, t).load();
    }
  };
  take_and_copy();
  for (PageNumber page = 0; page < kLogPages; ++page) {
    for (std::size_t t = 0; t < kThreads; ++t) copy[page * kThreads + t] = word(page, t).load();
  }
  std::vector<std::thread> writers;
  for (std::size_t t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      std::mt19937_64 random(t + 1);
      for (int round = 0; round < vellum::test::rounds(1500, 150); ++round) {
        Pages mine;
        for (int i = 0; i < 20; ++i) {
          // Mostly a few hot pages, sometimes any page.
          mine.push_back(random() % 4 == 0 ? random() % kLogPages : random() % 8 * 128);
          word(mine.back(), t).fetch_add(1);
        }
        const std::lock_guard lock(taking);
        take_and_copy();
        for (const PageNumber page : mine) missed += copy[page * kThreads + t] != word(page, t);
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(take(), Pages());
}

}  // namespace
}  // namespace vellum::region::test
