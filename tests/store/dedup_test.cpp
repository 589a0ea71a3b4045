// What a writer may refer to, and what it may not.
#include <gtest/gtest.h>

#include "store/branch_writer.hpp"
#include "store/lease.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kPages = 512;

class DedupRules : public ::testing::Test {
 protected:
  DedupRules() {
    StoreCore::create(base::posix_fs(), path_, small_options());
    for (const char* name : {"a", "b"}) {
      StoreCore::open(base::posix_fs(), path_)->create_branch(name, kPages * kPageBytes, 0);
    }
  }

  static std::vector<std::byte> content(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> out(kPages * kPageBytes);
    for (std::size_t at = 0; at < out.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(out.data() + at, &word, sizeof word);
    }
    return out;
  }
  // All pages, as a region's encoder does it; returns how many of them the store had.
  static std::size_t write(BranchWriter& writer, const std::vector<std::byte>& bytes) {
    auto commit = writer.begin(kPages);
    PageWrites out;
    std::vector<PageNumber> pages(kPages);
    for (PageNumber p = 0; p < kPages; ++p) pages[p] = p;
    if (commit->dedup() != nullptr) {
      commit->dedup()->find(
          pages, [&](std::size_t i) { return bytes.data() + i * kPageBytes; }, out.found);
    }
    const std::size_t found = out.found.size();
    for (const PageNumber p : pages) {
      const std::span<const std::byte> raw(bytes.data() + p * kPageBytes, kPageBytes);
      out.blocks.push_back(
          {{p}, base::Codec::none, {raw.begin(), raw.end()}, Dedup::worth_noting(raw, raw.size())});
    }
    commit->add(std::move(out));
    commit->finish({1, kPages * kPageBytes, 0, ""}, true);
    return found;
  }
  std::shared_ptr<StoreCore> open() const { return StoreCore::open(base::posix_fs(), path_); }

  TempDirectory directory_;
  std::string path_ = directory_.path("s");
};

TEST_F(DedupRules, WhatAnotherBranchHasPublishedIsFound) {
  const auto store = open();
  EXPECT_EQ(write(*BranchWriter::open(*store, "b"), content(1)), 0u);
  const auto later = open();
  // All but those before the first that is noted.
  EXPECT_GT(write(*BranchWriter::open(*later, "a"), content(1)), kPages - 100);
  expect_same(*open_version(*later, "a"), content(1));
}

// The fold has written everything, its hashes included, and then its flush fails: the next writer
// of that branch writes over it.
TEST_F(DedupRules, WhatAnotherBranchHasNotPublishedIsNot) {
  {
    FaultFs fs(base::posix_fs());
    const auto store = StoreCore::open(fs, path_);
    auto writer = BranchWriter::open(*store, "b");
    write(*writer, content(1));  // the pack is there, with a hash or more
    fs.fail_nth(Call::sync, 1, Errc::io);
    EXPECT_THROW(write(*writer, content(2)), Error);
  }
  const auto store = open();
  EXPECT_EQ(write(*BranchWriter::open(*store, "a"), content(2)), 0u);
  const auto after = open();
  EXPECT_EQ(write(*BranchWriter::open(*after, "b"), content(3)), 0u);
  expect_same(*open_version(*open(), "a"), content(2));
  expect_same(*open_version(*open(), "b"), content(3));
  EXPECT_TRUE(verify_store(*open(), true, {}).damages.empty());
}

TEST_F(DedupRules, NothingIsLookedUpBesideAGc) {
  const auto store = open();
  write(*BranchWriter::open(*store, "b"), content(1));
  const auto later = open();
  const Lease gc = keep_gc_for_us(*open());
  auto writer = BranchWriter::open(*later, "a");
  EXPECT_EQ(writer->begin(kPages)->dedup(), nullptr);
  EXPECT_EQ(write(*writer, content(1)), 0u);
  expect_same(*open_version(*later, "a"), content(1));
}

TEST_F(DedupRules, ALargeCommitKeepsGcOutUntilItIsOver) {
  const auto store = open();
  auto writer = BranchWriter::open(*store, "a");
  auto commit = writer->begin(kPages);
  ASSERT_NE(commit->dedup(), nullptr);
  error_text(Errc::busy, [&] { keep_gc_for_us(*open()); });
  commit.reset();
  keep_gc_for_us(*open());
}

// While a pack is being written, gc gives its old hashes back. Once it is sealed its index still
// names them.
TEST_F(DedupRules, GcFreesASealedPackWhoseHashesAreGone) {
  const auto options = [] {
    format::Superblock sb = small_options();
    sb.pack_bytes = 14 * kPages * kPageBytes;
    return sb;
  }();
  const std::string path = directory_.path("small-packs");
  const auto store = StoreCore::create(base::posix_fs(), path, options);
  store->create_branch("a", kPages * kPageBytes, 0);
  const auto gc = [&] {
    return collect_garbage(*StoreCore::open(base::posix_fs(), path), false, nullptr).freed_bytes;
  };
  {
    auto writer = BranchWriter::open(*store, "a");
    for (std::uint64_t i = 0; i < 12; ++i) write(*writer, content(i));
    writer->publish_snapshot("kept", "");
    EXPECT_GT(gc(), 10 * kPages * kPageBytes);  // with runs that were merged, and hashes
    for (std::uint64_t i = 12; i < 16; ++i) write(*writer, content(i));
    ASSERT_EQ(store->packs().list().size(), 2u);
  }
  gc();
  EXPECT_LT(pack_allocated(*store), 5 * kPages * kPageBytes / 2);
  expect_same(*open_version(*StoreCore::open(base::posix_fs(), path), "kept"), content(11));
  expect_same(*open_version(*StoreCore::open(base::posix_fs(), path), "a"), content(15));
}

}  // namespace
}  // namespace vellum::store::test
