// What is put into the stash comes back as it was, and the file does not grow for ever.
#include "region/paging/stash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "base/expect_error.hpp"
#include "base/temp_directory.hpp"
#include "format/page_diff.hpp"

namespace vellum::region::test {
namespace {

using format::kPageBytes;
using format::PageNumber;
using Page = std::vector<std::byte>;

class StashTest : public testing::Test {
 protected:
  // As an eviction does.
  int put(Stash& stash, PageNumber page, const Page& now, const std::byte* old = nullptr) {
    Stash::Batch batch(reinterpret_cast<std::byte*>(room_.get()));
    format::PageDiff diff;
    format::diff_page(old, now.data(), diff);
    batch.add(page, diff, now.data());
    return stash.put(batch);
  }
  Page back(Stash& stash, PageNumber page, Page over = Page(kPageBytes)) {
    alignas(8) Stash::Buffer buffer;
    Stash::Entry entry;
    EXPECT_EQ(stash.read(page, buffer, entry), 0);
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
      std::make_unique<std::uint64_t[]>(Stash::Batch::bytes(Stash::Batch::kMaxPages) / 8);
  std::mt19937_64 random_{1};
  bool whole_ = false;
};

TEST_F(StashTest, WholePagesAndDifferencesComeBack) {
  Stash stash(directory_.path(), 4096);
  const Page old = random_page();
  Page changed = old;
  changed[17] ^= std::byte{1};
  changed[4095] ^= std::byte{1};
  const Page other = random_page();
  ASSERT_EQ(put(stash, 5, changed, old.data()), 0);
  ASSERT_EQ(put(stash, 4095, other, old.data()), 0);
  EXPECT_EQ(back(stash, 5, old), changed);
  EXPECT_FALSE(whole_);
  EXPECT_EQ(back(stash, 4095), other);
  EXPECT_TRUE(whole_);
  EXPECT_EQ(stash.pages(), 2U);
  EXPECT_LT(stash.put_bytes(), kPageBytes + 128);
  EXPECT_EQ(stash.held_in(0, 64), 1U << 5);
  std::vector<PageNumber> pages;
  stash.append_pages(pages);
  EXPECT_EQ(pages, (std::vector<PageNumber>{5, 4095}));
  stash.drop(5);
  EXPECT_FALSE(stash.holds(5));
  EXPECT_TRUE(stash.holds(4095));
}

// Numbers of 34 bits, each with another page that its low 32 bits are.
TEST_F(StashTest, PagesOfTheLargestRegionAreToldApart) {
  constexpr PageNumber kPages = format::kMaxRegionBytes / kPageBytes, k4Gi = 1ULL << 32;
  Stash stash(directory_.path(), kPages);
  const std::vector<PageNumber> numbers{0,        1,        k4Gi - 1,          k4Gi,      k4Gi + 1,
                                        2 * k4Gi, 3 * k4Gi, kPages - k4Gi + 1, kPages - 1};
  std::map<PageNumber, Page> put_there;
  for (const PageNumber page : numbers) {
    put_there[page] = random_page();
    ASSERT_EQ(put(stash, page, put_there[page]), 0) << page;
  }
  for (const auto& [page, content] : put_there) EXPECT_EQ(back(stash, page), content) << page;
  for (const PageNumber page : numbers) {
    alignas(8) Stash::Buffer buffer;
    stash.move(page, buffer);
    EXPECT_EQ(back(stash, page), put_there[page]) << page;
    stash.drop(page);
    EXPECT_FALSE(stash.holds(page)) << page;
  }
}

TEST_F(StashTest, PagesOfABatchAreReadAtOnce) {
  Stash stash(directory_.path(), 4096);
  std::vector<Page> pages(16);
  Stash::Batch batch(reinterpret_cast<std::byte*>(room_.get()));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    pages[i] = random_page();
    format::PageDiff diff;
    format::diff_page(nullptr, pages[i].data(), diff);
    batch.add(32 + i, diff, pages[i].data());
  }
  ASSERT_EQ(stash.put(batch), 0);
  const Stash::Loaded loaded = stash.load(32, 0xffff, reinterpret_cast<std::byte*>(room_.get()));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    Stash::Entry entry;
    ASSERT_EQ(stash.read(loaded, 32 + i, nullptr, entry), 0) << "all is loaded: no buffer is used";
    EXPECT_EQ(std::memcmp(entry.bytes.data(), pages[i].data(), kPageBytes), 0);
  }
}

TEST_F(StashTest, PagesThatLieApartAreReadOneByOne) {
  Stash stash(directory_.path(), 4096);
  const Page first = random_page(), second = random_page();
  ASSERT_EQ(put(stash, 0, first), 0);
  for (PageNumber page = 100; page < 120; ++page) ASSERT_EQ(put(stash, page, random_page()), 0);
  ASSERT_EQ(put(stash, 1, second), 0);
  const Stash::Loaded loaded = stash.load(0, 3, reinterpret_cast<std::byte*>(room_.get()));
  alignas(8) Stash::Buffer buffer;
  Stash::Entry entry;
  ASSERT_EQ(stash.read(loaded, 0, buffer, entry), 0);
  EXPECT_EQ(std::memcmp(entry.bytes.data(), first.data(), kPageBytes), 0);
  ASSERT_EQ(stash.read(loaded, 1, buffer, entry), 0);
  EXPECT_EQ(std::memcmp(entry.bytes.data(), second.data(), kPageBytes), 0);
}

TEST_F(StashTest, TakenIsNotedUntilItIsDropped) {
  Stash stash(directory_.path(), 64);
  ASSERT_EQ(put(stash, 3, random_page()), 0);
  EXPECT_FALSE(stash.is_taken(3));
  stash.set_taken(3, true);
  EXPECT_TRUE(stash.is_taken(3));
  EXPECT_TRUE(stash.holds(3));
  stash.drop(3);
  EXPECT_FALSE(stash.is_taken(3));
}

TEST_F(StashTest, RoomIsUsedAgain) {
  constexpr PageNumber kPages = 4096;
  Stash stash(directory_.path(), kPages);
  const Page page = random_page();
  for (int round = 0; round < 20; ++round) {
    for (PageNumber p = 0; p < kPages; ++p) ASSERT_EQ(put(stash, p, page), 0) << round;
    for (PageNumber p = 0; p < kPages; ++p) stash.drop(p);
  }
  stash.tidy();
  EXPECT_EQ(stash.file_bytes(), 0U);
}

// One page in a thousand stays: whole segments are held by a few bytes.
TEST_F(StashTest, AFewThatStayDoNotHoldTheRest) {
  constexpr PageNumber kPages = 64 << 10;
  Stash stash(directory_.path(), kPages);
  const Page page = random_page();
  for (PageNumber p = 0; p < kPages; ++p) ASSERT_EQ(put(stash, p, page), 0);
  for (PageNumber p = 0; p < kPages; ++p) {
    if (p % 1000 != 0) stash.drop(p);
  }
  alignas(8) Stash::Buffer buffer;
  for (int i = 0; i < 1000; ++i) {
    const auto pages = stash.pages_to_move();
    if (pages.empty()) break;
    for (const PageNumber p : pages) stash.move(p, buffer);
  }
  stash.tidy();
  EXPECT_LT(stash.file_bytes(), 80u << 20);
  for (PageNumber p = 0; p < kPages; p += 1000) ASSERT_EQ(back(stash, p), page) << p;
}

TEST_F(StashTest, ADirectoryThatIsNotThereIsNamed) {
  const std::string path = directory_ / "none";
  try {
    const Stash stash(path, 64);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::not_found);
    EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace vellum::region::test
