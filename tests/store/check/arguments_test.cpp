// Data that a reader would refuse is refused before it is stored, and changes nothing.
#include "store/check/check.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kPages = 64;

class Arguments : public testing::Test {
 protected:
  Arguments() {
    store_ = StoreDirectory::create(base::posix_fs(), directory_.path("s"), small_options());
    store_->create_branch("main", kPages * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
    for (PageNumber p = 0; p < kPages / 2; ++p) model_.fill(p, random_);
    commit(*writer_, model_, true);
  }
  ~Arguments() override {
    EXPECT_EQ(writer_->head().sequence, 1u);
    model_.store64(1, 8, 1);
    commit(*writer_, model_, false);
    expect_same(*open_version(*store_, "main"), model_.bytes);
  }
  void refuse_block(PageBlock block) {
    PageWrites writes;
    writes.blocks.push_back(std::move(block));
    auto c = writer_->begin();
    const auto text = error_text(Errc::invalid_argument, [&] { c->add(std::move(writes)); });
    EXPECT_TRUE(contains(text, "branch 'main'")) << text;
  }
  void refuse(const format::CommitInfo& meta) {
    const auto text =
        error_text(Errc::invalid_argument, [&] { writer_->begin()->finish(meta, false); });
    EXPECT_TRUE(contains(text, "branch 'main'")) << text;
  }

  TempDirectory directory_;
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  Model model_{kPages};
  std::mt19937_64 random_{2};
};

TEST_F(Arguments, Blocks) {
  using base::Compression;
  const std::vector<std::byte> page(kPageBytes, std::byte{1});
  refuse_block({{}, Compression::none, page});
  refuse_block({{1}, Compression::zstd, {}});
  refuse_block({{1, 2}, Compression::none, page});
  const std::size_t too_many = format::max_block_bytes(small_options()) / kPageBytes + 1;
  std::vector<PageNumber> pages(too_many);
  for (std::size_t i = 0; i < too_many; ++i) pages[i] = i;
  refuse_block({pages, Compression::zstd, page});
}

TEST_F(Arguments, WhatACommitSaysOfTheRegion) {
  const std::uint64_t bytes = kPages * kPageBytes;
  refuse({1, bytes + 1, 0, ""});
  refuse({1, bytes - kPageBytes, 0, ""});
  refuse({1, format::kMaxRegionBytes + kPageBytes, 0, ""});
  refuse({1, bytes, 17, ""});
  refuse({1, bytes, UINT64_MAX / kPageBytes * kPageBytes, ""});
  refuse({1, bytes, 0, std::string(format::kMaxMessageBytes + 1, 'x')});
}

TEST_F(Arguments, APageOutsideOfTheRegion) {
  PageWrites writes;
  writes.zeros = {kPages};
  auto c = writer_->begin();
  c->add(std::move(writes));
  error_text(Errc::invalid_argument, [&] { c->finish({1, kPages * kPageBytes, 0, ""}, false); });
}

TEST_F(Arguments, BranchesSnapshotsAndOptions) {
  error_text(Errc::invalid_argument, [&] { store_->create_branch("b", 17, 0); });
  error_text(Errc::invalid_argument,
             [&] { store_->create_branch("b", format::kMaxRegionBytes + kPageBytes, 0); });
  EXPECT_FALSE(has_branch(*store_, "b"));
  error_text(Errc::invalid_argument, [&] {
    writer_->publish_snapshot("s", std::string(format::kMaxMessageBytes + 1, 'x'));
  });
  EXPECT_FALSE(has_snapshot(*store_, "s"));
  error_text(Errc::not_found, [&] { read_snapshot(*store_, "s"); });
  format::Superblock options = small_options();
  options.block_bytes = 5000;
  error_text(Errc::invalid_argument,
             [&] { StoreDirectory::create(base::posix_fs(), directory_.path("t"), options); });
  EXPECT_FALSE(std::filesystem::exists(directory_.path("t")));
}

// The statistics of a head include its journal.
TEST(Stat, OfAHeadWithCommitsInItsJournal) {
  TempDirectory directory;
  const auto store = StoreDirectory::create(base::posix_fs(), directory.path("s"), small_options());
  store->create_branch("main", kPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  std::mt19937_64 random(2);
  Model model(kPages);
  for (PageNumber p = 0; p < 30; ++p) model.fill(p, random);
  commit(*writer, model, true);
  model.zero(3);            // had a base
  model.zero(40);           // was zero
  model.store64(5, 8, 1);   // a delta over a base
  model.store64(50, 8, 1);  // and a delta without a base
  model.grow(kPages + 2);
  model.fill(kPages, random);
  commit(*writer, model, false);
  const auto stat = stat_store(*store);
  ASSERT_EQ(stat.versions.size(), 1u);
  EXPECT_EQ(stat.versions[0].region_bytes, (kPages + 2) * kPageBytes);
  EXPECT_EQ(stat.versions[0].nonzero_bytes, (30 - 1 + 2) * kPageBytes);
}

}  // namespace
}  // namespace vellum::store::test
