// Checkpoints that continue from what a push has staged: nothing is written twice, and whatever the
// staging branch is, the content is that of the commits.
#include "store/branch/staged_commits.hpp"

#include <semaphore>
#include <thread>

#include "store/branch/checkpointed_head.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::store::test {
namespace {

namespace files = std::filesystem;

constexpr std::size_t kStagedPages = 64;

class StagedCommits : public ::testing::Test {
 protected:
  StagedCommits() {
    format::Superblock options = small_options();
    options.journal_half_bytes = 256u << 10;
    store_ = StoreDirectory::create(fs_, directory_.path("s"), options);
    store_->create_branch("main", kStagedPages * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
    for (PageNumber p = 0; p < kStagedPages; ++p) model_.fill_noise(p, random_);
    commit(*writer_, model_, true);
  }
  void TearDown() override {
    fs_.hooks = {};
    expect_whole("main");
    expect_no_damage(*store_);
  }

  // As another process finds it.
  void expect_whole(const std::string& name) {
    const auto store = StoreDirectory::open(base::posix_fs(), store_->path());
    expect_same(*open_version(*store, name), model_.bytes);
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
  // What `vellum push` leaves: a branch that is not locked.
  void leave_staged() {
    stage();
    followed_ = {};
  }
  void publish_while_gc_reads(const std::function<void()>& publish);

  TempDirectory directory_;
  vellum::test::HookFs fs_{base::posix_fs()};
  std::mt19937_64 random_{5};
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  FollowedBranch followed_;
  Model model_{kStagedPages};
  PageNumber next_ = 0;
};

// A gc, if none excludes it, has read the branches when `publish` writes to a file that is no pack, and
// reads the pins when `publish` has returned.
void StagedCommits::publish_while_gc_reads(const std::function<void()>& publish) {
  vellum::test::HookFs gc_fs(base::posix_fs());
  const auto store = StoreDirectory::open(gc_fs, store_->path());
  std::binary_semaphore stopped(0), published(0);
  bool has_stopped = false;
  gc_fs.hooks.after_list = [&](const std::string& path) {
    if (!path.ends_with("/snapshots") || std::exchange(has_stopped, true)) return;
    stopped.release();
    published.acquire();
  };
  std::thread gc;
  fs_.hooks.before_write = [&](const std::string& path) {
    if (gc.joinable() || path.find("/packs/") != std::string::npos) return;
    gc = std::thread([&] {
      try {
        GcPace pace;
        pace.patience = std::chrono::milliseconds(0);
        collect_garbage(*store, false, nullptr, 0, pace);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::busy) << e.what();
      }
      if (!has_stopped) stopped.release();
    });
    stopped.acquire();
  };
  publish();
  fs_.hooks = {};
  published.release();
  ASSERT_TRUE(gc.joinable());
  gc.join();
}

TEST_F(StagedCommits, ACheckpointWritesOnlyWhatNoPushHasStaged) {
  commit_pages(8);
  EXPECT_GT(checkpoint_bytes(), 8 * kPageBytes);
  commit_pages(8);
  stage();
  EXPECT_LT(checkpoint_bytes(), kPageBytes);
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
TEST_F(StagedCommits, GcKeepsThemWhileTheCheckpointIsInTheBackground) {
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

// A gc reads the branches before the commit that publishes the checkpoint, and the pins after it.
TEST_F(StagedCommits, GcKeepsThemWhileABackgroundCheckpointIsPublished) {
  use_background_checkpoints(*store_);
  vellum::test::HookFs gc_fs(base::posix_fs());
  const auto other = StoreDirectory::open(gc_fs, store_->path());
  int met = 0, checkpoints = 0;
  for (int i = 0; i < 40; ++i) {
    const auto runs = writer_->head().runs;
    commit_pages(2);
    bool done = false;
    gc_fs.hooks.after_list = [&](const std::string& path) {
      if (path.ends_with("/snapshots") && !std::exchange(done, true)) commit_pages(1);
    };
    collect_garbage(*other, false, nullptr);
    met += done ? 1 : 0;
    checkpoints += writer_->head().runs != runs ? 1 : 0;
    expect_whole("main");
    if (HasFatalFailure()) return;
    leave_staged();
  }
  EXPECT_EQ(met, 40);
  EXPECT_GE(checkpoints, 2);
}

TEST_F(StagedCommits, GcKeepsThemWhileACheckpointIsPublished) {
  commit_pages(8);
  leave_staged();
  publish_while_gc_reads([&] { writer_->checkpoint_journal(); });
  expect_whole("main");
}

TEST_F(StagedCommits, GcKeepsThemWhileABranchIsClosed) {
  commit_pages(8);
  leave_staged();
  publish_while_gc_reads([&] { writer_.reset(); });
  expect_whole("main");
}

TEST_F(StagedCommits, GcKeepsThemWhileASnapshotIsPublished) {
  commit_pages(8);
  leave_staged();
  base::Compressor compressor;
  const NameLock claim = claim_name(*store_, "s");
  auto snapshot = writer_->begin();
  snapshot->add(model_.take(4, compressor));
  publish_while_gc_reads([&] { snapshot->finish_as(claim, meta_for(model_)); });
  expect_whole("main");
  expect_whole("s");
}

// gc holds the lock; it may be stopped while it does.
TEST_F(StagedCommits, ACheckpointWaitsForNoGc) {
  commit_pages(8);
  leave_staged();
  const auto other = StoreDirectory::open(base::posix_fs(), store_->path());
  const GcExclusive gc(*other);
  const NamesExclusive names(*other);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(checkpoint_bytes(), 8 * kPageBytes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

// Of a branch that nobody pushes.
TEST_F(StagedCommits, ACheckpointDoesNotReadItsJournal) {
  commit_pages(8);
  int reads = 0;
  fs_.hooks.before_read = [&](const std::string& path) {
    if (path.ends_with("/main/journal")) ++reads;
  };
  writer_->checkpoint_journal();
  EXPECT_EQ(reads, 0);
  commit_pages(8);
  stage();
  reads = 0;
  writer_->checkpoint_journal();
  EXPECT_GT(reads, 0);
}

// Each checkpoint has a copy of its version, also one that writes no page.
TEST_F(StagedCommits, RepairFindsTheNewestCheckpoint) {
  for (int i = 0; i < 3; ++i) {
    commit_pages(3);
    leave_staged();
    writer_->checkpoint_journal();
  }
  writer_.reset();
  const std::string damaged = directory_.path("damaged"), saved = directory_.path("saved");
  copy_directory(store_->path(), damaged);
  const std::string journal = damaged + "/branches/main/journal";
  const auto size_bytes = files::file_size(journal);
  files::resize_file(journal, format::kJournalHeaderBytes);
  files::resize_file(journal, size_bytes);
  repair_store(base::posix_fs(), damaged, saved, nullptr);
  const auto store = StoreDirectory::open(base::posix_fs(), saved);
  expect_same(*open_version(*store, "main"), model_.bytes);
}

TEST_F(StagedCommits, ACommitInPacksMakesOneCheckpoint) {
  commit_pages(8);
  model_.fill_noise(1, random_);
  const std::uint32_t flushes = commit(*writer_, model_, true).flushes;
  commit_pages(8);
  stage();
  model_.fill_noise(1, random_);
  EXPECT_EQ(commit(*writer_, model_, true).flushes, flushes);
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

TEST_F(StagedCommits, PacksGoOnInProcessesThatFindTheBranchCheckpointed) {
  commit_pages(1);
  leave_staged();
  const std::size_t packs = count_packs();
  for (int i = 0; i < 4; ++i) {
    writer_->checkpoint_journal();
    leave_staged();
    commit_pages(1);
    leave_staged();
  }
  EXPECT_EQ(count_packs(), packs);
  EXPECT_EQ(staging_branches().size(), 1u);
}

// Nothing is to be staged, so nothing needs space.
TEST_F(StagedCommits, AFullDiskFailsNoPushOfACheckpoint) {
  for (const bool same_process : {true, false}) {
    commit_pages(1);
    stage();
    writer_->checkpoint_journal();
    if (!same_process) followed_ = {};
    fs_.hooks.before_create = [](const std::string& path) {
      if (path.find("/tmp/") != std::string::npos) throw Error(Errc::no_space, "full");
    };
    const auto before_link = [](const std::string&) { throw Error(Errc::no_space, "full"); };
    fs_.hooks.before_link = fs_.hooks.before_make_directory = before_link;
    stage();
    EXPECT_EQ(staging_branches().size(), 0u);
    fs_.hooks = {};
  }
}

TEST_F(StagedCommits, AnUnreadableStagingBranchIsReplaced) {
  for (const std::string damage : {"journal", "pack", "journal of an earlier version"}) {
    SCOPED_TRACE(damage);
    commit_pages(1);
    leave_staged();
    const std::string journal = staging_journal();
    const auto base = store_->read_branch(staging_branches().at(0)).journal.base;
    if (damage == "pack") {
      files::remove(store_->packs().places().home_path(base.active_pack));
    } else {
      if (damage != "journal") writer_->checkpoint_journal();
      files::resize_file(journal, format::kJournalHeaderBytes);
    }
    commit_pages(1);
    leave_staged();
    ASSERT_EQ(staging_branches().size(), 1u);
    const std::size_t packs = count_packs();
    commit_pages(1);
    leave_staged();
    EXPECT_EQ(count_packs(), packs);
  }
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
