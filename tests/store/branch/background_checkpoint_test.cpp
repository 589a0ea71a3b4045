// Checkpoints concurrent with commits: they write the same content, a commit flushes once, and no
// failure in the background is ignored or loses a commit.
#include "store/branch/background_checkpoint.hpp"

#include "store/branch/fault_fs.hpp"
#include "store/check/check.hpp"
#include "store/gc/gc.hpp"
#include "store/journal/read_journal.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kBackgroundPages = 96;

// In most tests, the commit that starts a background checkpoint also does its work. The tests then
// check each state that a reader, another process or a crash may encounter.
class Background : public ::testing::Test {
 protected:
  Background() {
    store_ = StoreDirectory::create(fs_, directory_.path("s"), small_options());
    use_background_checkpoints(*store_);
    store_->create_branch("main", kBackgroundPages * kPageBytes, 0);
    open();
    for (PageNumber p = 0; p < kBackgroundPages; ++p) model_.fill(p, random_);
    commit(*writer_, model_, true);
  }

  void open() {
    writer_.reset();
    writer_ = BranchWriter::open(*store_, "main");
  }
  JournalState journal() const {
    const auto file =
        fs_.open(directory_.path("s/branches/main/journal"), base::OpenMode::read_only);
    return read_journal(*file, store_->superblock().store_id);
  }
  // A commit of some scattered words, about 700 bytes in the journal.
  CommitCost commit_some() {
    Model next = model_;
    for (int i = 0; i < 40; ++i)
      next.store64(random_() % kBackgroundPages, 8 * (random_() % 512), random_());
    const CommitCost cost = commit(*writer_, next, false);
    model_ = std::move(next);
    return cost;
  }
  // Commits until the background has written a checkpoint, which is not published, and then `more`
  // times.
  void fill(int more) {
    const std::uint64_t half = small_options().journal_half_bytes;
    const std::uint64_t from = journal().epoch;
    const auto used = [&] {
      const JournalState now = journal();
      return (now.tail_bytes - format::kJournalHeaderBytes) % half;
    };
    while (used() < half / 2) commit_some();
    ASSERT_EQ(journal().epoch, from);
    for (int i = 0; i < more; ++i) commit_some();
  }
  void expect_head() const {
    expect_same(*open_version(*store_, "main"), model_.bytes);
    expect_same(*writer_->open_head(), model_.bytes);
  }
  // Checks the store that a new writer opens after a crash, and the store after its work.
  void expect_after_crash() {
    copy_directory(directory_.path("s"), directory_.path("crashed"));
    auto crashed = StoreDirectory::open(base::posix_fs(), directory_.path("crashed"));
    use_background_checkpoints(*crashed);
    expect_same(*open_version(*crashed, "main"), model_.bytes);
    {
      auto writer = BranchWriter::open(*crashed, "main");
      expect_same(*writer->source_at_open(), model_.bytes);
      Model next = model_;
      next.store64(3, 8, 77);
      commit(*writer, next, false);
      expect_same(*open_version(*crashed, "main"), next.bytes);
    }
    expect_whole(*crashed);
  }
  static void expect_whole(StoreDirectory& store) {
    for (const Damage& d : verify_store(store, true, {}).damages) {
      ADD_FAILURE() << d.object << ": " << d.reason;
    }
  }

  TempDirectory directory_;
  mutable FaultFs fs_{base::posix_fs()};
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  Model model_{kBackgroundPages};
  std::mt19937_64 random_{5};
};

TEST_F(Background, TheNextCommitPublishesItWithOneFlush) {
  fill(0);
  const JournalState before = journal();
  ASSERT_GT(before.commits.size(), 2u);
  const CommitCost cost = commit_some();
  EXPECT_EQ(cost.flushes, 1u);
  EXPECT_FALSE(cost.checkpointed);
  const JournalState after = journal();
  EXPECT_EQ(after.epoch, before.epoch + 1);
  EXPECT_EQ(after.base.sequence, before.head_sequence());
  EXPECT_NE(after.base.runs, before.base.runs);
  EXPECT_EQ(after.commits.size(), 1u);
  EXPECT_EQ(after.head_sequence(), before.head_sequence() + 1);
  expect_head();
  expect_after_crash();
}

TEST_F(Background, NoCommitOfManyFlushesTwice) {
  const std::uint64_t from = journal().epoch;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 400; ++i) {
    const CommitCost cost = commit_some();
    ASSERT_EQ(cost.flushes, 1u) << i;
    bytes += cost.bytes_written;
    if (i % 7 == 0) expect_head();
  }
  EXPECT_GT(journal().epoch, from + 5);
  // The packs' bytes count, too.
  EXPECT_GT(bytes, 400u * 700 + writer_->head().bytes_added / 2);
  expect_after_crash();
  writer_.reset();
  expect_same(*open_version(*store_, "main"), model_.bytes);
  expect_whole(*store_);
}

TEST_F(Background, CommitsMadeWhileACheckpointIsWrittenAreKept) {
  writer_.reset();
  use_background_checkpoints(*store_, false);
  open();
  for (int round = 0; round < 300; ++round) {
    commit_some();
    if (round % 16 == 0) expect_head();
  }
  expect_after_crash();
  open();
  expect_head();
  expect_whole(*store_);
}

TEST_F(Background, OtherOperationsWaitForTheCheckpoint) {
  // A snapshot.
  fill(0);
  commit(*writer_, model_, true);
  writer_->publish_snapshot("snapshot", "");
  expect_same(*open_version(*store_, "snapshot"), model_.bytes);
  expect_head();
  // A commit that is too large for the journal.
  fill(0);
  for (PageNumber p = 0; p < kBackgroundPages; ++p) {
    for (std::size_t i = 0; i < kPageBytes; i += 8) model_.store64(p, i, random_());
  }
  EXPECT_TRUE(commit(*writer_, model_, false).checkpointed);
  expect_head();
  expect_after_crash();
  // A checkpoint of the journal's commits.
  fill(0);
  writer_->checkpoint_journal();
  EXPECT_TRUE(journal().commits.empty());
  expect_head();
  commit_some();
  expect_after_crash();
  // Closing.
  fill(0);
  open();
  EXPECT_TRUE(journal().commits.empty());
  expect_head();
  // A crash.
  fill(0);
  expect_after_crash();
  expect_whole(*store_);
}

TEST_F(Background, AnAbandonedCommitKeepsTheCheckpoint) {
  fill(0);
  {
    base::Compressor compressor;
    Model other = model_;
    other.store64(1, 8, 1);
    auto given_up = writer_->begin();
    given_up->add(other.take(4, compressor));
  }
  const std::uint64_t before = journal().epoch;
  commit_some();
  EXPECT_EQ(journal().epoch, before + 1);
  expect_head();
  expect_after_crash();
}

// Space that a background checkpoint writes to is no leftover.
TEST_F(Background, ConcurrentGcRemovesNothing) {
  for (int i = 0; i < 120; ++i) {
    commit_some();
    if (i % 5 != 0) continue;
    auto other = StoreDirectory::open(base::posix_fs(), directory_.path("s"));
    collect_garbage(*other, false, nullptr);
    expect_head();
  }
  expect_after_crash();
}

// The pack's writes fail. Commits succeed until the journal is full; the first one after that
// reports the reason. Nothing is lost.
TEST_F(Background, AFailedPackWriteIsReportedByTheCommitThatNeedsThePack) {
  fs_.fail_nth(Call::write, 1, Errc::no_space, true, "/packs/");
  fill(3);
  const std::uint64_t epoch = journal().epoch;
  const auto text = error_text(Errc::no_space, [&] {
    for (int i = 0; i < 200; ++i) commit_some();
  });
  EXPECT_TRUE(contains(text, "planned failure")) << text;
  EXPECT_EQ(journal().epoch, epoch);
  expect_head();
  expect_after_crash();
  fs_.heal();
  for (int i = 0; i < 200; ++i) commit_some();
  EXPECT_GT(journal().epoch, epoch + 2);
  expect_head();
  expect_after_crash();
}

// The records of an abandoned checkpoint begin after those of the last published one.
TEST_F(Background, AFailedCheckpointRemovesNothingOfThePublishedOne) {
  fill(0);
  commit_some();
  fs_.fail_nth(Call::write, 1, Errc::no_space, true, "/packs/");
  fill(3);
  fs_.heal();
  for (int i = 0; i < 200; ++i) commit_some();
  expect_head();
  expect_after_crash();
  open();
  expect_head();
}

TEST_F(Background, APackThatCannotBeSyncedPoisonsTheNextCommit) {
  fs_.fail_nth(Call::sync, 1, Errc::io, false, "/packs/");
  fill(0);
  const auto text = error_text(Errc::poisoned, [&] { commit_some(); });
  EXPECT_TRUE(contains(text, "planned failure")) << text;
  error_text(Errc::poisoned, [&] { commit_some(); });
  expect_after_crash();
  open();
  expect_same(*writer_->source_at_open(), model_.bytes);
  for (int i = 0; i < 100; ++i) commit_some();
  expect_head();
}

// The frame that publishes the checkpoint: if it cannot be written, its commit has not happened,
// and the next commit publishes. If it cannot be synced, the branch is poisoned.
TEST_F(Background, AFrameThatCannotBeWrittenIsWrittenByTheNextCommit) {
  for (std::uint64_t nth = 1;; ++nth) {
    fill(0);
    const JournalState before = journal();
    fs_.fail_nth(Call::write, nth, Errc::no_space, true, "/journal");
    bool failed = false;
    try {
      commit_some();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::no_space) << e.what();
      failed = true;
    }
    fs_.heal();
    expect_head();
    expect_after_crash();
    if (!failed) break;
    ASSERT_LT(nth, 10u);
    commit_some();
    EXPECT_EQ(journal().epoch, before.epoch + 1);
    EXPECT_EQ(journal().head_sequence(), before.head_sequence() + 1);
    expect_head();
  }
}

TEST_F(Background, AFrameThatCannotBeSyncedPoisonsTheBranch) {
  fill(0);
  const auto before = model_.bytes;
  Model next = model_;
  next.store64(5, 16, 99);
  fs_.fail_nth(Call::sync, 1, Errc::io, false, "/journal");
  error_text(Errc::io, [&] { commit(*writer_, next, false); });
  error_text(Errc::poisoned, [&] { commit(*writer_, next, false); });
  open();
  std::vector<std::byte> now(model_.bytes.size());
  writer_->source_at_open()->read(0, kBackgroundPages, now.data());
  EXPECT_TRUE(now == before || now == next.bytes);
}

// When a page's chain is full, a commit reads the page's base and reports damage there.
TEST_F(Background, ADamagedBaseIsReportedByTheCommitThatNeedsIt) {
  fill(0);
  commit(*writer_, model_, true);
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path("s/packs"))) {
    std::filesystem::resize_file(entry.path(), 200);
  }
  store_.reset();
  writer_.reset();
  store_ = StoreDirectory::open(fs_, directory_.path("s"));
  use_background_checkpoints(*store_);
  try {
    open();
    for (int i = 0; i < 200; ++i) commit_some();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::corrupted) << e.what();
  }
}

}  // namespace
}  // namespace vellum::store::test
