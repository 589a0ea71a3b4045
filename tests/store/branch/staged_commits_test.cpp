// Checkpoints that continue from what a push has staged: nothing is written twice, and whatever the
// staging branch is, the content is that of the commits.
#include "store/branch/staged_commits.hpp"

#include "store/branch/checkpointed_head.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/snapshots_fixture.hpp"

namespace vellum::store::test {
namespace {

namespace files = std::filesystem;

constexpr std::size_t kStagedPages = 64;

class StagedCommits : public ::testing::Test {
 protected:
  StagedCommits() {
    format::Superblock options = small_options();
    options.journal_half_bytes = 256u << 10;
    store_ = StoreDirectory::create(base::posix_fs(), directory_.path("s"), options);
    store_->create_branch("main", kStagedPages * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
    for (PageNumber p = 0; p < kStagedPages; ++p) model_.fill_noise(p, random_);
    commit(*writer_, model_, true);
  }
  ~StagedCommits() override {
    expect_same(*open_version(*store_, "main"), model_.bytes);
    expect_no_damage(*store_);
  }

  // To the journal, pages that do not compress.
  void commit_pages(std::size_t pages) {
    for (std::size_t i = 0; i < pages; ++i) model_.fill_noise(next_++ % kStagedPages, random_);
    commit(*writer_, model_, false);
  }
  // What a push writes.
  void stage(FollowedBranch* followed = nullptr) {
    const CheckpointedHead head(*store_, "main", followed != nullptr ? followed : &followed_);
    expect_same(*PageSource::open(*store_, head.version(), {}, "the pushed version"), model_.bytes);
  }
  std::vector<std::string> staging_branches() const {
    std::vector<std::string> out;
    for (const std::string& name : store_->branch_names()) {
      if (is_staging_name(name)) out.push_back(name);
    }
    return out;
  }
  std::string staging_journal() const { return store_->journal_path(staging_branches().at(0)); }
  // Bytes that the checkpoint of the journal appends to the branch's packs.
  std::uint64_t checkpoint_bytes() {
    const std::uint64_t before = packs_of(writer_->head().branch_id);
    writer_->checkpoint_journal();
    return packs_of(writer_->head().branch_id) - before;
  }
  std::uint64_t packs_of(std::uint64_t branch_id) const {
    std::uint64_t bytes = 0;
    for (const std::uint64_t pack : store_->packs().list()) {
      if (pack >> 32 == branch_id)
        bytes += files::file_size(store_->packs().places().home_path(pack));
    }
    return bytes;
  }
  std::size_t count_packs() const { return store_->packs().list().size(); }

  TempDirectory directory_;
  std::mt19937_64 random_{5};
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  FollowedBranch followed_;
  Model model_{kStagedPages};
  PageNumber next_ = 0;
};

TEST_F(StagedCommits, ACheckpointWritesOnlyWhatNoPushHasStaged) {
  commit_pages(8);
  EXPECT_GT(checkpoint_bytes(), 8 * kPageBytes);
  commit_pages(8);
  stage();
  EXPECT_EQ(checkpoint_bytes(), 0u);
  EXPECT_EQ(open_version(*store_, "main")->chain(8).front().record.pack >> 32,
            writer_->head().runs.front().root.pack >> 32);
  commit_pages(4);
  stage();
  commit_pages(2);
  const std::uint64_t bytes = checkpoint_bytes();
  EXPECT_GT(bytes, 2 * kPageBytes);
  EXPECT_LT(bytes, 3 * kPageBytes);
  EXPECT_EQ(writer_->head().pages_changed, kStagedPages + 8u + 8 + 6);
}

TEST_F(StagedCommits, ACheckpointInTheBackgroundDoes) {
  use_background_checkpoints(*store_);
  FollowedBranch followed;
  std::uint64_t own = packs_of(writer_->head().branch_id);
  const std::uint64_t first = writer_->head().runs.front().root.offset_bytes;
  for (int i = 0; i < 80; ++i) {
    commit_pages(1);
    stage(&followed);
  }
  EXPECT_NE(writer_->head().runs.front().root.offset_bytes, first);  // there were checkpoints
  EXPECT_LT(packs_of(writer_->head().branch_id) - own, 40 * kPageBytes);
}

// The staging branch ends, and gc runs, between the writing of the checkpoint and its publication.
TEST_F(StagedCommits, GcKeepsThemUntilTheCheckpointIsPublished) {
  use_background_checkpoints(*store_);
  const auto runs = writer_->head().runs;
  for (int i = 0; i < 80 && writer_->head().runs == runs; ++i) {
    commit_pages(1);
    if (i % 8 == 7) {
      followed_.end();
      collect_garbage(*store_, false, nullptr);
    } else {
      stage();
    }
  }
  EXPECT_NE(writer_->head().runs, runs);
  followed_.end();
  collect_garbage(*store_, false, nullptr);
}

TEST_F(StagedCommits, ASnapshotDoes) {
  commit_pages(8);
  stage();
  const std::uint64_t before = packs_of(writer_->head().branch_id);
  model_.fill_noise(1, random_);
  commit(*writer_, model_, true);
  writer_->publish_snapshot("s", "");
  EXPECT_LT(packs_of(writer_->head().branch_id) - before, 3 * kPageBytes);
  expect_same(*open_version(*store_, "s"), model_.bytes);
  stage();
  followed_.end();
  collect_garbage(*store_, false, nullptr);  // the staged records are the branch's now
  expect_same(*open_version(*store_, "s"), model_.bytes);
}

TEST_F(StagedCommits, PacksGoOnAcrossCheckpoints) {
  commit_pages(1);
  stage();
  const std::size_t packs = count_packs();
  for (int i = 0; i < 8; ++i) {
    commit_pages(1);
    stage();
    if (i % 2 == 0) writer_->checkpoint_journal();
    if (i % 4 == 0) stage();
    if (i == 5) followed_ = {};  // another process
  }
  EXPECT_EQ(count_packs(), packs);
  EXPECT_EQ(staging_branches().size(), 1u);
}

TEST_F(StagedCommits, AStagedPageThatCannotBeReadIsWrittenAgain) {
  commit_pages(8);
  stage();
  const std::uint64_t pack = store_->read_branch(staging_branches().at(0)).journal.base.active_pack;
  followed_ = {};
  files::resize_file(store_->packs().places().home_path(pack), 100);
  EXPECT_GT(checkpoint_bytes(), 8 * kPageBytes);
  StagingBranch::remove_kept(*store_, writer_->head().branch_id, {});
}

TEST_F(StagedCommits, ContentThatTheCommitsDoNotHaveIsNotAdopted) {
  commit_pages(4);
  stage();
  followed_ = {};
  Model other = model_;
  {
    auto writer = BranchWriter::open(*store_, staging_branches().at(0));
    other.fill_noise(40, random_);
    other.fill_noise(1, random_);
    other.zero(50);
    commit(*writer, other, true);
  }
  const std::uint64_t bytes = checkpoint_bytes();
  EXPECT_GT(bytes, kPageBytes);  // the branch's packs have the base pages of the two others
  EXPECT_LT(bytes, 4 * kPageBytes);
}

// A power cut may restore an older journal of the staging branch, though not of its packs.
TEST_F(StagedCommits, NoRecordThatACheckpointNeedsIsReplaced) {
  for (const bool moves : {false, true}) {
    commit_pages(1);
    stage();
    const auto journal = base::read_whole(base::posix_fs(), staging_journal(), 1u << 20);
    commit_pages(4);
    stage();
    followed_ = {};
    const std::string path = staging_journal();
    if (moves) writer_->checkpoint_journal();
    base::posix_fs().open(path, base::OpenMode::read_write)->pwrite(journal, 0);
    const auto pinned = resolve_kept(*store_, "main");
    commit_pages(1);
    stage();
    expect_same(*open_version(*store_, "main"), model_.bytes);
    if (!moves) writer_->checkpoint_journal();
  }
}

}  // namespace
}  // namespace vellum::store::test
