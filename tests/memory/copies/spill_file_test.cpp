// Spilled pages are read back unchanged, and the file does not grow without bound.
#include "memory/copies/spill_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "format/records/page_diff.hpp"

namespace vellum::region::test {
namespace {

using format::kPageBytes;
using format::PageNumber;
using Page = std::vector<std::byte>;

class SpillFileTest : public testing::Test {
 protected:
  // Spills as an eviction does.
  int put(SpillFile& spill, PageNumber page, const Page& now, const std::byte* old = nullptr) {
    SpillFile::Batch batch(reinterpret_cast<std::byte*>(room_.get()));
    format::PageDiff diff;
    format::diff_page(old, now.data(), diff);
    batch.add(page, diff, now.data());
    return spill.put(batch);
  }
  Page back(SpillFile& spill, PageNumber page, Page over = Page(kPageBytes)) {
    alignas(8) SpillFile::Buffer buffer;
    SpillFile::Entry entry;
    EXPECT_EQ(spill.read(page, buffer, entry), 0);
    whole_ = entry.whole;
    entry.apply_to(over.data());
    return over;
  }
  Page random_page() {
    Page page(kPageBytes);
    for (auto& b : page) b = static_cast<std::byte>(random_());
    return page;
  }

  vellum::test::TempDirectory directory_;
  std::unique_ptr<std::uint64_t[]> room_ =
      std::make_unique<std::uint64_t[]>(SpillFile::Batch::bytes(SpillFile::Batch::kMaxPages) / 8);
  std::mt19937_64 random_{1};
  bool whole_ = false;
};

TEST_F(SpillFileTest, WholePagesAndDifferencesAreReadBack) {
  SpillFile spill(directory_.path(), 4096);
  const Page old = random_page();
  Page changed = old;
  changed[17] ^= std::byte{1};
  changed[4095] ^= std::byte{1};
  const Page other = random_page();
  ASSERT_EQ(put(spill, 5, changed, old.data()), 0);
  ASSERT_EQ(put(spill, 4095, other, old.data()), 0);
  EXPECT_EQ(back(spill, 5, old), changed);
  EXPECT_FALSE(whole_);
  EXPECT_EQ(back(spill, 4095), other);
  EXPECT_TRUE(whole_);
  EXPECT_EQ(spill.pages(), 2U);
  EXPECT_LT(spill.put_bytes(), kPageBytes + 128);
  EXPECT_EQ(spill.held_in(0, 64), 1U << 5);
  std::vector<PageNumber> pages;
  spill.append_pages(pages);
  EXPECT_EQ(pages, (std::vector<PageNumber>{5, 4095}));
  spill.drop(5);
  EXPECT_FALSE(spill.holds(5));
  EXPECT_TRUE(spill.holds(4095));
}

// Page numbers of 34 bits, each together with the page of its low 32 bits.
TEST_F(SpillFileTest, PagesOfTheLargestRegionAreDistinguished) {
  constexpr PageNumber kPages = format::kMaxRegionBytes / kPageBytes, k4Gi = 1ULL << 32;
  SpillFile spill(directory_.path(), kPages);
  const std::vector<PageNumber> numbers{0,        1,        k4Gi - 1,          k4Gi,      k4Gi + 1,
                                        2 * k4Gi, 3 * k4Gi, kPages - k4Gi + 1, kPages - 1};
  std::map<PageNumber, Page> put_there;
  for (const PageNumber page : numbers) {
    put_there[page] = random_page();
    ASSERT_EQ(put(spill, page, put_there[page]), 0) << page;
  }
  for (const auto& [page, content] : put_there) EXPECT_EQ(back(spill, page), content) << page;
  for (const PageNumber page : numbers) {
    alignas(8) SpillFile::Buffer buffer;
    spill.move(page, buffer);
    EXPECT_EQ(back(spill, page), put_there[page]) << page;
    spill.drop(page);
    EXPECT_FALSE(spill.holds(page)) << page;
  }
}

TEST_F(SpillFileTest, PagesOfABatchAreReadAtOnce) {
  SpillFile spill(directory_.path(), 4096);
  std::vector<Page> pages(16);
  SpillFile::Batch batch(reinterpret_cast<std::byte*>(room_.get()));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    pages[i] = random_page();
    format::PageDiff diff;
    format::diff_page(nullptr, pages[i].data(), diff);
    batch.add(32 + i, diff, pages[i].data());
  }
  ASSERT_EQ(spill.put(batch), 0);
  const SpillFile::LoadedRecords loaded =
      spill.load(32, 0xffff, reinterpret_cast<std::byte*>(room_.get()));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    SpillFile::Entry entry;
    ASSERT_EQ(spill.read(loaded, 32 + i, nullptr, entry), 0) << "all is loaded: no buffer is used";
    EXPECT_EQ(std::memcmp(entry.bytes.data(), pages[i].data(), kPageBytes), 0);
  }
}

TEST_F(SpillFileTest, ScatteredPagesAreReadOneByOne) {
  SpillFile spill(directory_.path(), 4096);
  const Page first = random_page(), second = random_page();
  ASSERT_EQ(put(spill, 0, first), 0);
  for (PageNumber page = 100; page < 120; ++page) ASSERT_EQ(put(spill, page, random_page()), 0);
  ASSERT_EQ(put(spill, 1, second), 0);
  const SpillFile::LoadedRecords loaded =
      spill.load(0, 3, reinterpret_cast<std::byte*>(room_.get()));
  alignas(8) SpillFile::Buffer buffer;
  SpillFile::Entry entry;
  ASSERT_EQ(spill.read(loaded, 0, buffer, entry), 0);
  EXPECT_EQ(std::memcmp(entry.bytes.data(), first.data(), kPageBytes), 0);
  ASSERT_EQ(spill.read(loaded, 1, buffer, entry), 0);
  EXPECT_EQ(std::memcmp(entry.bytes.data(), second.data(), kPageBytes), 0);
}

TEST_F(SpillFileTest, TakenPagesAreRecordedUntilTheyAreDropped) {
  SpillFile spill(directory_.path(), 64);
  ASSERT_EQ(put(spill, 3, random_page()), 0);
  EXPECT_FALSE(spill.is_taken(3));
  spill.set_taken(3, true);
  EXPECT_TRUE(spill.is_taken(3));
  EXPECT_TRUE(spill.holds(3));
  spill.drop(3);
  EXPECT_FALSE(spill.is_taken(3));
}

TEST_F(SpillFileTest, FreedSpaceIsReused) {
  constexpr PageNumber kPages = 4096;
  SpillFile spill(directory_.path(), kPages);
  const Page page = random_page();
  for (int round = 0; round < 20; ++round) {
    for (PageNumber p = 0; p < kPages; ++p) ASSERT_EQ(put(spill, p, page), 0) << round;
    for (PageNumber p = 0; p < kPages; ++p) spill.drop(p);
  }
  spill.tidy();
  EXPECT_EQ(spill.file_bytes(), 0U);
}

// One page in a thousand stays: a few bytes keep whole segments in use.
TEST_F(SpillFileTest, AFewRemainingPagesDoNotKeepTheSpaceOfTheRest) {
  constexpr PageNumber kPages = 64 << 10;
  SpillFile spill(directory_.path(), kPages);
  const Page page = random_page();
  for (PageNumber p = 0; p < kPages; ++p) ASSERT_EQ(put(spill, p, page), 0);
  for (PageNumber p = 0; p < kPages; ++p) {
    if (p % 1000 != 0) spill.drop(p);
  }
  alignas(8) SpillFile::Buffer buffer;
  for (int i = 0; i < 1000; ++i) {
    const auto pages = spill.pages_to_move();
    if (pages.empty()) break;
    for (const PageNumber p : pages) spill.move(p, buffer);
  }
  spill.tidy();
  EXPECT_LT(spill.file_bytes(), 80u << 20);
  for (PageNumber p = 0; p < kPages; p += 1000) ASSERT_EQ(back(spill, p), page) << p;
}

TEST_F(SpillFileTest, TheErrorNamesAMissingDirectory) {
  const std::string path = directory_ / "none";
  try {
    const SpillFile spill(path, 64);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::not_found);
    EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace vellum::region::test
