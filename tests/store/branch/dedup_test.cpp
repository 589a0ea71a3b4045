// Stored pages that a writer may refer to, and pages that it may not.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "store/branch/branch_writer.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/recompress_support.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kDedupPages = 512;

class DedupRules : public ::testing::Test {
 protected:
  DedupRules() {
    StoreDirectory::create(base::posix_fs(), path_, small_options());
    for (const char* name : {"a", "b"}) {
      StoreDirectory::open(base::posix_fs(), path_)
          ->create_branch(name, kDedupPages * kPageBytes, 0);
    }
  }

  static std::vector<std::byte> content(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::byte> out(kDedupPages * kPageBytes);
    for (std::size_t at = 0; at < out.size(); at += 8) {
      const std::uint64_t word = random();
      std::memcpy(out.data() + at, &word, sizeof word);
    }
    return out;
  }
  // Adds the pages that the store has to `out.found`; returns the others.
  static std::vector<PageNumber> look_up(BranchWriter::Commit& commit,
                                         const std::vector<std::byte>& bytes, PageWrites& out) {
    std::vector<PageNumber> pages(kDedupPages);
    std::iota(pages.begin(), pages.end(), PageNumber{0});
    if (commit.dedup() != nullptr) {
      commit.dedup()->find(
          pages, [&](std::size_t i) { return bytes.data() + i * kPageBytes; }, out.found);
    }
    return pages;
  }
  // Writes all pages as a region's encoder does; returns how many of them the store had.
  static std::size_t write(BranchWriter& writer, const std::vector<std::byte>& bytes) {
    auto commit = writer.begin(kDedupPages);
    PageWrites out;
    const auto pages = look_up(*commit, bytes, out);
    for (const PageNumber p : pages) {
      const std::span<const std::byte> raw(bytes.data() + p * kPageBytes, kPageBytes);
      out.blocks.push_back({{p},
                            base::Compression::none,
                            {raw.begin(), raw.end()},
                            Dedup::worth_noting(raw, raw.size())});
    }
    commit->add(std::move(out));
    commit->finish({1, kDedupPages * kPageBytes, 0, ""}, true);
    return kDedupPages - pages.size();
  }
  // The number of pages that the writer would refer to.
  static std::size_t found(BranchWriter& writer, const std::vector<std::byte>& bytes) {
    const auto commit = writer.begin(kDedupPages);
    EXPECT_NE(commit->dedup(), nullptr);
    PageWrites out;
    look_up(*commit, bytes, out);
    return out.found.size();
  }
  static format::Superblock packs_of(std::uint64_t contents) {
    format::Superblock options = small_options();
    options.pack_bytes = contents * kDedupPages * kPageBytes;
    return options;
  }
  std::shared_ptr<StoreDirectory> open() const {
    return StoreDirectory::open(base::posix_fs(), path_);
  }

  TempDirectory directory_;
  std::string path_ = directory_.path("s");
};

TEST_F(DedupRules, PublishedPagesOfAnotherBranchAreFound) {
  const auto store = open();
  EXPECT_EQ(write(*BranchWriter::open(*store, "b"), content(1)), 0u);
  const auto later = open();
  // All but the pages before the first hashed one.
  EXPECT_GT(write(*BranchWriter::open(*later, "a"), content(1)), kDedupPages - 100);
  expect_same(*open_version(*later, "a"), content(1));
}

// The checkpoint has written all records and hashes when its flush fails. The next writer of that
// branch overwrites them.
TEST_F(DedupRules, UnpublishedPagesOfAnotherBranchAreNotFound) {
  {
    FaultFs fs(base::posix_fs());
    const auto store = StoreDirectory::open(fs, path_);
    auto writer = BranchWriter::open(*store, "b");
    write(*writer, content(1));  // the pack exists, with at least one hash
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

// An interrupted checkpoint has left a pack of its own that reads as whole, but was never synced.
// Neither later packs of the branch nor the branch's removal imply that the pack is durable.
TEST_F(DedupRules, ThePackOfAnInterruptedCheckpointIsNotUsed) {
  const std::string path = directory_.path("packs");
  std::uint64_t left = 0;
  {
    FaultFs fs(base::posix_fs());
    const auto store = StoreDirectory::create(fs, path, packs_of(1));  // one pack per checkpoint
    for (const char* name : {"a", "b"}) store->create_branch(name, kDedupPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "b");
    write(*writer, content(1));
    fs.fail_nth(Call::sync, 2, Errc::io);  // the first seals the previous pack
    EXPECT_THROW(write(*writer, content(2)), Error);
    left = store->packs().list().back();
  }
  const auto reopen = [&] { return StoreDirectory::open(base::posix_fs(), path); };
  {
    const auto store = reopen();
    auto writer = BranchWriter::open(*store, "b");
    for (const std::uint64_t seed : {3u, 4u, 5u}) write(*writer, content(seed));
  }
  const auto packs = reopen()->packs().list();
  EXPECT_TRUE(std::binary_search(packs.begin(), packs.end(), left));
  EXPECT_FALSE(std::binary_search(packs.begin(), packs.end(), left + 1));
  for (const char* name : {"a", "b"}) {
    const auto store = reopen();
    auto writer = BranchWriter::open(*store, name);
    EXPECT_EQ(found(*writer, content(2)), 0u) << name;
    EXPECT_GT(found(*writer, content(3)), kDedupPages - 100) << name;
  }
  reopen()->remove_branch("b");
  const auto store = reopen();
  EXPECT_EQ(found(*BranchWriter::open(*store, "a"), content(2)), 0u);
}

// A pack that versions need ends with records of an interrupted checkpoint. While the branch
// exists, its journal records where they begin; after its removal, only its snapshots do.
TEST_F(DedupRules, UnpublishedPagesOfARemovedBranchAreNotFound) {
  {
    FaultFs fs(base::posix_fs());
    const auto store = StoreDirectory::open(fs, path_);
    auto writer = BranchWriter::open(*store, "b");
    write(*writer, content(1));
    writer->publish_snapshot("kept", "");
    fs.fail_nth(Call::sync, 1, Errc::io);
    EXPECT_THROW(write(*writer, content(2)), Error);
  }
  open()->remove_branch("b");
  const auto store = open();
  auto writer = BranchWriter::open(*store, "a");
  EXPECT_EQ(found(*writer, content(2)), 0u);
  EXPECT_GT(found(*writer, content(1)), kDedupPages - 100);
  writer.reset();
  open()->remove_snapshot("kept");
  const auto later = open();
  EXPECT_EQ(found(*BranchWriter::open(*later, "a"), content(1)), 0u);
}

// The pack was rewritten and then removed. The writer still has the original file open. It is
// whole, but no other process can open it.
TEST_F(DedupRules, PagesOfAnUnlinkedFileAreNotFound) {
  const std::string path = directory_.path("packs");
  const auto store =
      StoreDirectory::create(base::posix_fs(), path, packs_of(1));  // one pack per checkpoint
  for (const char* name : {"a", "b"}) store->create_branch(name, kDedupPages * kPageBytes, 0);
  {
    auto other = BranchWriter::open(*store, "b");
    for (const std::uint64_t seed : {1u, 2u}) write(*other, content(seed));
    other->publish_snapshot("kept", "");
  }
  const auto own = StoreDirectory::open(base::posix_fs(), path);
  auto writer = BranchWriter::open(*own, "a");
  EXPECT_GT(found(*writer, content(2)), kDedupPages - 100);
  write(*BranchWriter::open(*store, "b"), content(3));  // seals the previous pack
  ASSERT_GT(translate_all(*StoreDirectory::open(base::posix_fs(), path), 1), 0u);
  store->remove_snapshot("kept");
  store->remove_branch("b");
  collect_garbage(*StoreDirectory::open(base::posix_fs(), path), false, nullptr);
  EXPECT_EQ(found(*writer, content(2)), 0u);
}

// A commit finds the records that it has appended itself, including the last one. The last record
// is readable once the writer's buffer is full; the first round finds how many records fill it.
TEST_F(DedupRules, TheRecordThatWasAppendedLastIsFound) {
  const auto bytes = content(1);
  const auto page = [&](PageNumber p) {
    return std::span(bytes).subspan(p * kPageBytes, kPageBytes);
  };
  PageNumber noted = 0;  // is looked up by its hash; the next page is found as its successor
  while (Dedup::worth_noting(page(noted), kPageBytes).empty() ||
         !Dedup::worth_noting(page(noted + 1), kPageBytes).empty()) {
    ++noted;
  }
  const auto store = open();
  const auto add = [&](BranchWriter::Commit& commit, PageNumber at, PageNumber content) {
    PageWrites out;
    out.blocks.push_back({{at},
                          base::Compression::none,
                          {page(content).begin(), page(content).end()},
                          Dedup::worth_noting(page(content), kPageBytes)});
    commit.add(std::move(out));
  };
  const auto written = [&] {
    const auto packs = store->packs().list();
    return !packs.empty() &&
           std::filesystem::file_size(store->packs().places().home_path(packs.back())) != 0;
  };
  PageNumber last = 0;
  {
    auto writer = BranchWriter::open(*store, "a");
    auto commit = writer->begin(kDedupPages);
    for (; !written(); ++last) add(*commit, last, noted + 1);
    --last;
  }
  auto writer = BranchWriter::open(*store, "b");
  auto commit = writer->begin(kDedupPages);
  for (PageNumber p = 0; p <= last; ++p) add(*commit, p, p + 1 == last ? noted : noted + 1);
  std::vector<PageNumber> pages = {noted, noted + 1};
  std::vector<PageRef> found;
  commit->dedup()->find(pages, [&](std::size_t i) { return page(noted + i).data(); }, found);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(pages.empty());
}

TEST_F(DedupRules, NothingIsLookedUpDuringGc) {
  const auto store = open();
  write(*BranchWriter::open(*store, "b"), content(1));
  const auto later = open();
  const GcExclusive gc(*open());
  auto writer = BranchWriter::open(*later, "a");
  EXPECT_EQ(writer->begin(kDedupPages)->dedup(), nullptr);
  EXPECT_EQ(write(*writer, content(1)), 0u);
  expect_same(*open_version(*later, "a"), content(1));
}

TEST_F(DedupRules, ALargeCommitKeepsGcOutUntilItIsOver) {
  const auto store = open();
  auto writer = BranchWriter::open(*store, "a");
  auto commit = writer->begin(kDedupPages);
  ASSERT_NE(commit->dedup(), nullptr);
  error_text(Errc::busy, [&] { GcExclusive{*open()}; });
  commit.reset();
  GcExclusive{*open()};
}

// While a pack is active, gc frees its old hash records. The index of the sealed pack still names
// them.
TEST_F(DedupRules, GcFreesASealedPackWithFreedHashes) {
  const std::string path = directory_.path("small-packs");
  const auto store = StoreDirectory::create(base::posix_fs(), path, packs_of(14));
  store->create_branch("a", kDedupPages * kPageBytes, 0);
  const auto gc = [&] {
    return collect_garbage(*StoreDirectory::open(base::posix_fs(), path), false, nullptr)
        .freed_bytes;
  };
  {
    auto writer = BranchWriter::open(*store, "a");
    for (std::uint64_t i = 0; i < 12; ++i) write(*writer, content(i));
    writer->publish_snapshot("kept", "");
    EXPECT_GT(gc(), 10 * kDedupPages * kPageBytes);  // includes merged runs and hashes
    for (std::uint64_t i = 12; i < 16; ++i) write(*writer, content(i));
    ASSERT_EQ(store->packs().list().size(), 2u);
  }
  gc();
  EXPECT_LT(pack_allocated(*store), 5 * kDedupPages * kPageBytes / 2);
  expect_same(*open_version(*StoreDirectory::open(base::posix_fs(), path), "kept"), content(11));
  expect_same(*open_version(*StoreDirectory::open(base::posix_fs(), path), "a"), content(15));
}

}  // namespace
}  // namespace vellum::store::test
