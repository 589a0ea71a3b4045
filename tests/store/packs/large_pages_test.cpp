// The largest region: journal, checkpoints, merges, diff, gc and verify distinguish pages whose
// numbers have more than 32 bits from those with the same low 32 bits.
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/page_map/diff.hpp"
#include "store/support.hpp"
#include "support/disk/memory_fs.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::MemoryFs;
using Page = std::vector<std::byte>;

constexpr PageNumber kLargePagesPages = format::kMaxRegionBytes / kPageBytes, k4Gi = 1ULL << 32;
const std::vector<PageNumber> kNumbers{0,
                                       1,
                                       5,
                                       k4Gi - 1,
                                       k4Gi,
                                       k4Gi + 1,
                                       k4Gi + 5,
                                       2 * k4Gi,
                                       3 * k4Gi,
                                       kLargePagesPages - k4Gi + 1,
                                       kLargePagesPages - 2,
                                       kLargePagesPages - 1};

class LargePages : public ::testing::Test {
 protected:
  LargePages() : store_(StoreDirectory::create(fs_, "/s", small_options())) {
    store_->create_branch("main", format::kMaxRegionBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
  }

  static Page page_of(PageNumber page, std::uint64_t salt) {
    Page out(kPageBytes);
    std::mt19937_64 random(page * 31 + salt);
    for (std::byte& b : out) b = static_cast<std::byte>(random());
    return out;
  }
  void commit(PageWrites&& writes, bool checkpoint) {
    auto c = writer_->begin();
    c->add(std::move(writes));
    c->finish({1, format::kMaxRegionBytes, 0, ""}, checkpoint);
  }
  void write_whole(std::uint64_t salt, bool checkpoint) {
    PageWrites w;
    PageBlock block;
    for (const PageNumber p : kNumbers) {
      content_[p] = page_of(p, salt);
      block.pages = {p};
      block.stored = content_[p];
      w.blocks.push_back(block);
    }
    commit(std::move(w), checkpoint);
  }
  void write_words(std::uint64_t salt, bool checkpoint) {
    PageWrites w;
    for (const PageNumber p : kNumbers) {
      const Page old = content_[p];
      std::memcpy(content_[p].data() + 8 * (p % 100), &salt, sizeof salt);
      w.deltas.add_difference(p, old.data(), content_[p].data());
    }
    commit(std::move(w), checkpoint);
  }
  void write_zeros(bool checkpoint) {
    PageWrites w;
    w.zeros = kNumbers;
    for (const PageNumber p : kNumbers) content_[p] = Page(kPageBytes);
    commit(std::move(w), checkpoint);
  }
  void expect_content(const std::string& version) {
    const auto source = open_version(*store_, version);
    ASSERT_EQ(source->region_bytes(), format::kMaxRegionBytes);
    Page out(kPageBytes);
    PageNumber expected = 0;
    const bool zero = content_.begin()->second == Page(kPageBytes);
    for (const PageNumber p : kNumbers) {
      source->read(p, 1, out.data());
      EXPECT_EQ(out, content_[p]) << version << " page " << p;
      if (!zero) {
        EXPECT_EQ(source->zeros_from(expected, kLargePagesPages), p - expected) << p;
      }
      expected = p + 1;
    }
  }
  void expect_whole() {
    for (const Damage& d : verify_store(*store_, true, {}).damages) {
      ADD_FAILURE() << d.object << ": " << d.reason;
    }
  }

  MemoryFs fs_;
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  std::map<PageNumber, Page> content_;
};

TEST_F(LargePages, LargeNumbersAreReadFromTheJournalAndFromPacks) {
  write_whole(1, false);
  expect_content("main");
  write_words(2, false);
  expect_content("main");
  write_words(3, true);
  expect_content("main");
  write_zeros(false);
  expect_content("main");
  write_whole(4, true);
  expect_content("main");
  writer_.reset();
  store_ = StoreDirectory::open(fs_, "/s");
  expect_content("main");
  expect_whole();
}

TEST_F(LargePages, DiffAndGcDistinguishLargeNumbers) {
  write_whole(1, true);
  writer_->publish_snapshot("one", "");
  for (std::uint64_t i = 0; i < 12; ++i) write_words(i, true);  // runs that are merged
  writer_->publish_snapshot("two", "");
  const auto one = resolve_version(*store_, "one"), two = resolve_version(*store_, "two");
  EXPECT_EQ(
      pages_that_may_differ(*open_version(*store_, "one"), one, *open_version(*store_, "two"), two),
      kNumbers);
  store_->remove_snapshot("one");
  collect_garbage(*store_, false, {});
  expect_content("two");
  expect_whole();
}

}  // namespace
}  // namespace vellum::store::test
