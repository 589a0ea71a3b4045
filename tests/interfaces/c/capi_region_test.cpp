// The C interface to a region: ranges, transactions, memory, and closing.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#include <vellum/error.hpp>

#include "interfaces/c/capi_fixture.hpp"

namespace vellum::test {
namespace {

class CRegionTest : public CApiTest {
 protected:
  static constexpr std::size_t kWordsPerPage = 4096 / sizeof(std::uint64_t);

  std::uint64_t& first_word_of(std::size_t page) { return words()[page * kWordsPerPage]; }
  std::uint64_t committed(std::size_t page) const {
    std::uint64_t word = 0;
    EXPECT_EQ(vellum_read(store_, "main", page * 4096, &word, sizeof word), VELLUM_OK) << message();
    return word;
  }
  // Another branch, whose region is opened with options_.
  vellum_region* opened(const char* branch) {
    vellum_region* region = nullptr;
    EXPECT_EQ(vellum_region_open_or_create(store_, branch, kCRegionBytes, &options_, &region),
              VELLUM_OK)
        << message();
    return region;
  }
};

TEST_F(CRegionTest, ACommitOfRangesLeavesTheRestToTheNext) {
  first_word_of(0) = 1;
  first_word_of(9) = 1;
  first_word_of(100) = 1;
  const vellum_span written[] = {{&first_word_of(0), 8}, {&first_word_of(9), 8}};
  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_commit_ranges(region_, written, 2, "two", &report), VELLUM_OK) << message();
  EXPECT_EQ(report.pages_changed, 2U);
  EXPECT_EQ(committed(0) + committed(9), 2U);
  EXPECT_EQ(committed(100), 0U);
  const auto see_message = [](const vellum_version_info* version, void* context) {
    *static_cast<std::string*>(context) = version->message;
    return 0;
  };
  std::string found;
  ASSERT_EQ(vellum_find_version(store_, "main", see_message, &found), VELLUM_OK) << message();
  EXPECT_EQ(found, "two");

  EXPECT_EQ(vellum_commit_ranges(region_, nullptr, 0, nullptr, &report), VELLUM_OK) << message();
  EXPECT_EQ(report.pages_changed, 0U);
  const vellum_span outside[] = {{words(), 8}, {&report, 8}};
  EXPECT_EQ(vellum_commit_ranges(region_, outside, 2, nullptr, nullptr),
            VELLUM_ERR_INVALID_ARGUMENT);
  const vellum_span past_the_end[] = {{&first_word_of(255), 4097}};
  EXPECT_EQ(vellum_commit_ranges(region_, past_the_end, 1, nullptr, nullptr),
            VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(committed(100), 0U);
  ASSERT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(committed(100), 1U);
}

TEST_F(CRegionTest, ATransactionIsCommittedWhole) {
  vellum_transaction* transaction = nullptr;
  ASSERT_EQ(vellum_begin(region_, &transaction), VELLUM_OK) << message();
  EXPECT_EQ(vellum_transaction_is_open(transaction), 1);
  first_word_of(0) = 1;
  first_word_of(9) = 1;
  EXPECT_EQ(vellum_commit(region_, nullptr, nullptr), VELLUM_ERR_BUSY);
  EXPECT_EQ(vellum_rollback(region_), VELLUM_ERR_BUSY);
  auto* second = transaction;
  EXPECT_EQ(vellum_begin(region_, &second), VELLUM_ERR_BUSY);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(committed(0), 0U);
  vellum_commit_report forgotten = {};
  EXPECT_EQ(vellum_transaction_commit(transaction, nullptr, &forgotten),
            VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_transaction_is_open(transaction), 1) << "after an error";

  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_transaction_commit(transaction, "both", &report), VELLUM_OK) << message();
  EXPECT_EQ(report.pages_changed, 2U);
  EXPECT_EQ(committed(0) + committed(9), 2U);
  EXPECT_EQ(vellum_transaction_is_open(transaction), 0);
  EXPECT_EQ(vellum_transaction_commit(transaction, nullptr, nullptr), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_transaction_rollback(transaction), VELLUM_ERR_INVALID_ARGUMENT);
  first_word_of(0) = 3;
  vellum_transaction_close(transaction);
  EXPECT_EQ(first_word_of(0), 3U) << "what came after the commit is not the transaction's";
}

TEST_F(CRegionTest, ATransactionThatIsNotCommittedIsRolledBack) {
  vellum_transaction* transaction = nullptr;
  ASSERT_EQ(vellum_begin(region_, &transaction), VELLUM_OK) << message();
  first_word_of(0) = 1;
  vellum_transaction_close(transaction);
  EXPECT_EQ(first_word_of(0), 0U);

  ASSERT_EQ(vellum_begin(region_, &transaction), VELLUM_OK) << message();
  first_word_of(0) = 1;
  ASSERT_EQ(vellum_transaction_rollback(transaction), VELLUM_OK) << message();
  EXPECT_EQ(first_word_of(0), 0U);
  EXPECT_EQ(vellum_transaction_is_open(transaction), 0);
  first_word_of(0) = 2;
  vellum_transaction_close(transaction);
  EXPECT_EQ(first_word_of(0), 2U);
}

TEST_F(CRegionTest, ATransactionKeepsItsRegionOpen) {
  vellum_transaction* transaction = nullptr;
  ASSERT_EQ(vellum_begin(region_, &transaction), VELLUM_OK) << message();
  std::uint64_t& word = first_word_of(0);
  word = 5;
  vellum_region_close(region_);
  region_ = nullptr;
  EXPECT_EQ(word, 5U);
  ASSERT_EQ(vellum_transaction_commit(transaction, nullptr, nullptr), VELLUM_OK) << message();
  vellum_transaction_close(transaction);
  ASSERT_EQ(vellum_region_open(store_, "main", &options_, &region_), VELLUM_OK) << message();
  EXPECT_EQ(first_word_of(0), 5U);
}

TEST_F(CRegionTest, ARegionReportsItsNameAndEngine) {
  EXPECT_STREQ(vellum_region_name(region_), "main");
  ASSERT_EQ(vellum_snapshot(region_, "s", nullptr, nullptr), VELLUM_OK) << message();
  vellum_region* version = nullptr;
  ASSERT_EQ(vellum_region_open_version(store_, "s", nullptr, &version), VELLUM_OK) << message();
  EXPECT_STREQ(vellum_region_name(version), "s");
  vellum_region_close(version);
  options_.engine = VELLUM_ENGINE_SIGSEGV;
  vellum_region* other = opened("other");
  EXPECT_EQ(vellum_region_engine(other), VELLUM_ENGINE_SIGSEGV);
  vellum_region_close(other);
  EXPECT_STREQ(vellum_engine_name(VELLUM_ENGINE_UFFD), "uffd");
  EXPECT_STREQ(vellum_engine_name(VELLUM_ENGINE_MAPPED), "mapped");
  EXPECT_STREQ(vellum_engine_name(-1), "unknown");
  EXPECT_STREQ(vellum_engine_name(4), "unknown");
}

// A caller's struct may end before the last members.
TEST_F(CRegionTest, ARegionReportsItsMemoryUse) {
  options_.engine = VELLUM_ENGINE_SIGSEGV;
  options_.memory_limit_bytes = 64 << 20;
  vellum_region* region = opened("other");
  std::memset(vellum_region_data(region), 1, kCRegionBytes / 2);
  vellum_memory_use use = VELLUM_MEMORY_USE_INIT;
  ASSERT_EQ(vellum_region_memory_use(region, &use), VELLUM_OK) << message();
  EXPECT_EQ(use.limit_bytes, 64U << 20);
  EXPECT_GE(use.resident_bytes, kCRegionBytes / 2);
  vellum_memory_use shorter;
  std::memset(&shorter, 0xee, sizeof shorter);
  shorter.struct_size = offsetof(vellum_memory_use, resident_bytes);
  ASSERT_EQ(vellum_region_memory_use(region, &shorter), VELLUM_OK) << message();
  EXPECT_EQ(shorter.limit_bytes, 64U << 20);
  EXPECT_EQ(shorter.resident_bytes, 0xeeeeeeeeeeeeeeeeU);
  vellum_region_close(region);
}

// This program frees copies at once (eager_reclaim_lib.cpp). The region that does so is committed
// last: once its copies are freed, the other's would be freed as well.
TEST_F(CRegionTest, ARegionKeepsItsCopiesOnRequestNoSanitizer) {
  options_.engine = VELLUM_ENGINE_SIGSEGV;
  options_.keep_copies = 1;
  vellum_region* keeps = opened("keeps");
  options_.keep_copies = 0;
  vellum_region* gives_back = opened("gives_back");
  const auto resident_bytes = [](const vellum_region* region) {
    vellum_memory_use use = VELLUM_MEMORY_USE_INIT;
    EXPECT_EQ(vellum_region_memory_use(region, &use), VELLUM_OK) << message();
    return use.resident_bytes;
  };
  for (vellum_region* region : {keeps, gives_back}) {
    std::memset(vellum_region_data(region), 1, kCRegionBytes);
    ASSERT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  }
  while (resident_bytes(gives_back) > kCRegionBytes) {  // bounded by the time limit of a test
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(resident_bytes(keeps), 2 * kCRegionBytes);
  vellum_region_close(gives_back);
  vellum_region_close(keeps);
}

class CImageTest : public CRegionTest {
 protected:
  void SetUp() override {
    CRegionTest::SetUp();
    options_.image_path = image_.c_str();
    options_.engine = VELLUM_ENGINE_MAPPED;
  }
  const std::string image_ = directory_.path() + "/image";
};

TEST_F(CImageTest, TheFileIsTheContentOnRequest) {
  vellum_region* region = opened("filed");
  *static_cast<char*>(vellum_region_data(region)) = 'a';
  ASSERT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  vellum_region_close(region);
  std::ofstream(image_, std::ios::binary | std::ios::trunc) << "shorter";
  EXPECT_EQ(vellum_region_open(store_, "filed", &options_, &region), VELLUM_ERR_INVALID_ARGUMENT);
  options_.image_is_content = 1;
  ASSERT_EQ(vellum_region_open(store_, "filed", &options_, &region), VELLUM_OK) << message();
  EXPECT_STREQ(static_cast<char*>(vellum_region_data(region)), "shorter");
  EXPECT_EQ(vellum_region_file_size(region), 7U);
  vellum_region_close(region);
}

// Pages that are present and belong to no file, as pagemap reports (proc_pid_pagemap(5)).
std::size_t private_pages(const char* from, std::size_t pages) {
  std::vector<std::uint64_t> entries(pages);
  const std::size_t bytes = pages * sizeof(std::uint64_t);
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto at = reinterpret_cast<std::uintptr_t>(from) / 4096 * sizeof(std::uint64_t);
  EXPECT_EQ(pread(pagemap, entries.data(), bytes, static_cast<off_t>(at)),
            static_cast<ssize_t>(bytes));
  close(pagemap);
  return static_cast<std::size_t>(std::count_if(
      entries.begin(), entries.end(), [](std::uint64_t entry) { return (entry >> 61 & 5) == 4; }));
}

TEST_F(CImageTest, DroppedCopiesAreTheImagesAgain) {
  constexpr std::size_t kPages = kCRegionBytes / 4096;
  vellum_region* region = opened("filed");
  auto* const bytes = static_cast<char*>(vellum_region_data(region));
  std::memset(bytes, 1, kCRegionBytes);
  ASSERT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(private_pages(bytes, kPages), kPages);
  const vellum_span spans[] = {{bytes, 4096}, {bytes + 2 * 4096, kCRegionBytes - 2 * 4096}};
  ASSERT_EQ(vellum_drop_copies(region, spans, 2), VELLUM_OK) << message();
  EXPECT_EQ(private_pages(bytes, kPages), 1U);
  EXPECT_EQ(bytes[0], 1);
  const vellum_span outside{bytes + kCRegionBytes, 1};
  EXPECT_EQ(vellum_drop_copies(region, &outside, 1), VELLUM_ERR_INVALID_ARGUMENT);
  vellum_region_close(region);
}

TEST_F(CImageTest, MemoryIsLeftInPlace) {
  vellum_region* region = opened("filed");
  auto* const bytes = static_cast<char*>(vellum_region_data(region));
  const std::uint64_t capacity = vellum_region_capacity(region);
  std::strcpy(bytes, "committed");
  ASSERT_EQ(vellum_commit(region, nullptr, nullptr), VELLUM_OK) << message();
  ASSERT_EQ(vellum_region_close_and_leave_memory(region), VELLUM_OK) << message();
  EXPECT_STREQ(bytes, "committed");
  vellum_region_close(opened("filed"));  // the branch is not locked
  EXPECT_EQ(munmap(bytes, capacity), 0);

  options_.engine = VELLUM_ENGINE_SIGSEGV;
  options_.image_path = nullptr;
  region = opened("other");
  EXPECT_EQ(vellum_region_close_and_leave_memory(region), VELLUM_ERR_UNSUPPORTED);
  EXPECT_EQ(vellum_region_engine(region), VELLUM_ENGINE_SIGSEGV) << "it is open still";
  vellum_region_close(region);
}

TEST_F(CRegionTest, AFileThatGrowsHasRoom) {
  ASSERT_EQ(vellum_resize_file(region_, 2 * kCRegionBytes + 1, kCRegionBytes), VELLUM_OK)
      << message();
  EXPECT_EQ(vellum_region_file_size(region_), 2 * kCRegionBytes + 1);
  EXPECT_EQ(vellum_region_size(region_), 3 * kCRegionBytes + 4096);
}

TEST_F(CApiTest, CheckoutAndResolveUndoACommit) {
  for (const char* name : {"one", "two", "three"}) {
    ++words()[0];
    ASSERT_EQ(vellum_snapshot(region_, name, nullptr, nullptr), VELLUM_OK) << message();
  }
  char name[256];
  ASSERT_EQ(vellum_resolve(store_, "main~2", name, sizeof name), VELLUM_OK) << message();
  EXPECT_STREQ(name, "two");
  EXPECT_EQ(vellum_resolve(store_, "main~2", name, 3), VELLUM_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(vellum_resolve(store_, "main~9", name, sizeof name), VELLUM_ERR_NOT_FOUND);
  vellum_commit_report report = VELLUM_COMMIT_REPORT_INIT;
  ASSERT_EQ(vellum_checkout(region_, "main~2", nullptr, &report), VELLUM_OK) << message();
  EXPECT_EQ(words()[0], 2u);
  EXPECT_EQ(report.pages_changed, 1u);
  std::uint64_t sum = 0;
  const auto add = [](const vellum_diff_range* range, void* context) {
    EXPECT_EQ(range->range.length_bytes, 16u);
    *static_cast<std::uint64_t*>(context) += *static_cast<const std::uint64_t*>(range->a) * 10 +
                                             *static_cast<const std::uint64_t*>(range->b);
    return 0;
  };
  ASSERT_EQ(vellum_diff_bytes(store_, "one", "latest", 16, add, &sum, nullptr), VELLUM_OK)
      << message();
  EXPECT_EQ(sum, 13u);
  vellum_retention_policy policy = VELLUM_RETENTION_POLICY_INIT;
  policy.keep_last = 1;
  ASSERT_EQ(vellum_forget(store_, &policy, nullptr, nullptr), VELLUM_OK) << message();
  EXPECT_EQ(vellum_resolve(store_, "latest", name, sizeof name), VELLUM_OK);
  EXPECT_STREQ(name, "three");
  EXPECT_EQ(vellum_checkout(region_, "two", nullptr, nullptr), VELLUM_ERR_NOT_FOUND);
}

}  // namespace
}  // namespace vellum::test
