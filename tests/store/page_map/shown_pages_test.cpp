// The entries that show, against a plain set of pages: gc frees the records of all others.
#include "store/page_map/shown_pages.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace vellum::store::test {
namespace {

using format::PageKind;
using format::PageNumber;

constexpr std::uint64_t kStretch = 1u << 15;  // pages that share one word of bookkeeping

// Computes the same as ShownPages, page by page.
class PlainShownPages {
 public:
  bool take(PageNumber page, std::uint32_t count, PageKind kind) {
    bool shows = false;
    for (PageNumber p = page; p < page + count; ++p) {
      if (hidden_[p]) continue;
      shows = true;
      if (!mentioned_[p] && kind != PageKind::zero) ++nonzero_;
      mentioned_[p] = true;
      if (kind != PageKind::delta) hidden_[p] = true;
    }
    return shows;
  }
  std::uint64_t nonzero_pages() const { return nonzero_; }

 private:
  static constexpr std::size_t kPages = 8 * kStretch;
  std::vector<bool> hidden_ = std::vector<bool>(kPages), mentioned_ = hidden_;
  std::uint64_t nonzero_ = 0;
};

TEST(ShownPages, LikeAPlainSet) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    ShownPages pages;
    PlainShownPages plain;
    const std::uint64_t most = round % 4 == 0 ? 3 * kStretch : round % 4 == 1 ? 300 : 70;
    for (int i = 0; i < 60; ++i) {
      const auto kind = static_cast<PageKind>(random() % 3);
      const PageNumber near = random() % 3 * kStretch;
      const PageNumber page = near + random() % 200;
      const std::uint32_t count =
          kind == PageKind::delta ? 1 : static_cast<std::uint32_t>(1 + random() % most);
      ASSERT_EQ(pages.take(page, count, kind), plain.take(page, count, kind))
          << "round " << round << ", entry " << i;
      ASSERT_EQ(pages.nonzero_pages(), plain.nonzero_pages());
    }
  }
}

// A range that is hidden in one step, or word by word to its last page.
TEST(ShownPages, WholeStretches) {
  for (const bool in_one_step : {true, false}) {
    ShownPages pages;
    if (in_one_step) {
      EXPECT_TRUE(pages.take(kStretch, kStretch, PageKind::base));
    } else {
      for (PageNumber p = kStretch; p < 2 * kStretch - 1; p += 31) {
        const auto count = std::min<PageNumber>(31, 2 * kStretch - 1 - p);
        EXPECT_TRUE(pages.take(p, static_cast<std::uint32_t>(count), PageKind::base));
      }
      EXPECT_TRUE(pages.take(2 * kStretch - 1, 1, PageKind::delta));
      EXPECT_TRUE(pages.take(2 * kStretch - 1, 1, PageKind::base));
    }
    EXPECT_EQ(pages.nonzero_pages(), kStretch);
    EXPECT_FALSE(pages.take(kStretch, kStretch, PageKind::zero));
    EXPECT_FALSE(pages.take(2 * kStretch - 1, 1, PageKind::delta));
    EXPECT_FALSE(pages.take(kStretch + 77, 1000, PageKind::base));
    EXPECT_TRUE(pages.take(kStretch - 1, 2, PageKind::base));
    EXPECT_TRUE(pages.take(2 * kStretch - 1, 2, PageKind::zero));
    EXPECT_FALSE(pages.take(kStretch - 1, kStretch + 2, PageKind::base));
    EXPECT_EQ(pages.nonzero_pages(), kStretch + 1);
  }
}

}  // namespace
}  // namespace vellum::store::test
