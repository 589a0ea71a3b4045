// Failing calls: the error is reported, the last commit stays, and the branch accepts further
// commits where the error allows it.
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "format/records/record.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/check/check.hpp"
#include "store/support.hpp"

namespace vellum::store::test {
namespace {

class Faults : public ::testing::Test {
 protected:
  Faults() {
    store_ = StoreDirectory::create(fs_, directory_.path("s"), small_options());
    store_->create_branch("main", 256 * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
    for (PageNumber p = 0; p < 256; ++p) model_.fill(p, random_);
    commit(*writer_, model_, true);
  }

  // Another store, "t", in which each commit that checkpoints fills packs.
  void take_store_of_small_packs() {
    format::Superblock tiny = small_options();
    tiny.pack_bytes = 4096;
    store_ = StoreDirectory::create(fs_, directory_.path("t"), tiny);
    store_->create_branch("main", 256 * kPageBytes, 0);
    writer_ = BranchWriter::open(*store_, "main");
  }

  // Changes `pages` pages of a copy, and tries to commit the copy.
  void try_commit(std::size_t pages, bool checkpoint, bool whole_pages) {
    attempt_ = model_;
    for (std::size_t i = 0; i < pages; ++i) {
      if (whole_pages) {
        attempt_.fill(i, random_);
      } else {
        attempt_.store64(random_() % 256, 8 * (random_() % 512), random_());
      }
    }
    commit(*writer_, attempt_, checkpoint);
    model_ = attempt_;
  }
  // Checks the state that another process and the next writer find.
  void expect_last_commit() {
    auto other = StoreDirectory::open(base::posix_fs(), directory_.path("s"));
    expect_same(*open_version(*other, "main"), model_.bytes);
    copy_directory(directory_.path("s"), directory_.path("crashed"));
    auto crashed = StoreDirectory::open(base::posix_fs(), directory_.path("crashed"));
    auto writer = BranchWriter::open(*crashed, "main");
    expect_same(*writer->source_at_open(), model_.bytes);
    Model next = model_;
    next.store64(1, 0, 12345);
    commit(*writer, next, false);
    next.store64(2, 0, 12345);
    commit(*writer, next, true);
    expect_same(*open_version(*crashed, "main"), next.bytes);
    writer.reset();
    EXPECT_TRUE(verify_store(*crashed, true, {}).damages.empty());
  }

  TempDirectory directory_;
  FaultFs fs_{base::posix_fs()};
  std::shared_ptr<StoreDirectory> store_;
  std::unique_ptr<BranchWriter> writer_;
  Model model_{256}, attempt_{256};
  std::mt19937_64 random_{11};
};

TEST_F(Faults, EveryFailedWriteLeavesTheLastCommit) {
  for (const bool checkpoint : {false, true}) {
    for (const bool whole : {false, true}) {
      for (std::uint64_t nth = 1;; ++nth) {
        try_commit(3, false, false);  // so that the journal has a commit
        fs_.reset_counts();
        fs_.fail_nth(Call::write, nth, Errc::no_space, true);
        bool failed = false;
        try {
          try_commit(40, checkpoint, whole);
        } catch (const Error& e) {
          failed = true;
          EXPECT_EQ(e.code(), Errc::no_space) << e.what();
        }
        expect_last_commit();
        fs_.heal();
        if (!failed) break;
        ASSERT_LT(nth, 100u);
        // The disk has space again: the branch accepts commits.
        try_commit(5, false, false);
        expect_last_commit();
        try_commit(5, true, false);
        expect_last_commit();
      }
    }
  }
}

TEST_F(Faults, EveryFailedSyncPoisonsTheBranch) {
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    for (const bool checkpoint : {false, true}) {
      if (nth == 2 && !checkpoint) continue;
      try_commit(3, false, false);
      fs_.fail_nth(Call::sync, nth, Errc::io, false);
      error_text(Errc::io, [&] { try_commit(5, checkpoint, false); });
      const Model attempted = attempt_;
      const std::string text = error_text(Errc::poisoned, [&] { try_commit(1, false, false); });
      EXPECT_TRUE(contains(text, "branch 'main'")) << text;
      EXPECT_TRUE(contains(text, "planned failure")) << text;
      error_text(Errc::poisoned, [&] { writer_->publish_snapshot("s", ""); });
      // Reopening recovers the previous commit, or the one whose sync failed, whole.
      writer_.reset();
      writer_ = BranchWriter::open(*store_, "main");
      const auto source = writer_->source_at_open();
      std::vector<std::byte> now(model_.bytes.size());
      source->read(0, 256, now.data());
      EXPECT_TRUE(now == model_.bytes || now == attempted.bytes);
      if (now == attempted.bytes) model_ = attempted;
      try_commit(5, true, false);
      expect_last_commit();
    }
  }
}

TEST_F(Faults, AFailedPackCreationDoesNoHarm) {
  take_store_of_small_packs();
  Model model(256);
  for (int i = 0; i < 20; ++i) {
    for (PageNumber p = 0; p < 20; ++p) model.fill_noise((random_() % 200) + p, random_);
    const Model before = model;
    if (i % 3 == 1) {
      fs_.fail_nth(Call::create, 1, Errc::no_space);
      Model attempt = model;
      error_text(Errc::no_space, [&] { commit(*writer_, attempt, true); });
    } else if (i % 3 == 2) {
      fs_.fail_nth(Call::write, 3, Errc::no_space);
      Model attempt = model;
      try {
        commit(*writer_, attempt, true);
        model = attempt;
      } catch (const Error&) {
      }
      fs_.heal();
    }
    commit(*writer_, model, true);
    expect_same(*open_version(*store_, "main"), model.bytes);
  }
  writer_.reset();
  EXPECT_GT(store_->packs().list().size(), 5u);
  const auto report = verify_store(*store_, true, {});
  for (const auto& d : report.damages) ADD_FAILURE() << d.object << ": " << d.reason;
}

// A failed checkpoint created a pack and could not remove it. The next pack does not get the next
// number: that would mean that the abandoned pack was flushed (Roots::reached_bytes).
TEST_F(Faults, NoPackDirectlyFollowsAnAbandonedOne) {
  take_store_of_small_packs();
  Model model(256);
  const auto packs = [&] {
    return StoreDirectory::open(base::posix_fs(), directory_.path("t"))->packs().list();
  };
  int left = 0;
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    for (PageNumber p = 0; p < 20; ++p) model.fill(p, random_);
    commit(*writer_, model, true);
    const std::uint64_t last = packs().back();
    for (PageNumber p = 0; p < 20; ++p) model.fill(p, random_);
    fs_.fail_nth(Call::write, nth, Errc::no_space, true);
    fs_.fail_nth(Call::unlink, 1, Errc::io, true);
    bool failed = false;
    try {
      Model attempt = model;
      commit(*writer_, attempt, true);
    } catch (const Error&) {
      failed = true;
    }
    fs_.heal();
    const std::uint64_t given_up = packs().back();
    commit(*writer_, model, true);
    if (!failed || given_up == last) continue;
    ++left;
    const auto now = packs();
    EXPECT_FALSE(std::binary_search(now.begin(), now.end(), given_up + 1)) << nth;
  }
  EXPECT_GT(left, 0);
  expect_same(*open_version(*store_, "main"), model.bytes);
}

// Another store replaces the directory after the superblock was opened and before it is read.
TEST_F(Faults, AStoreIsReadFromTheFileThatItKeepsOpen) {
  class Exchanging final : public vellum::test::ForwardingFs {
   public:
    using ForwardingFs::ForwardingFs;
    std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
      auto file = ForwardingFs::open(path, mode);
      if (path.ends_with("/vellum.store") && !std::exchange(exchanged_, true)) {
        ForwardingFs::rename(other, path);
      }
      return file;
    }
    std::string other;

   private:
    bool exchanged_ = false;
  };
  const auto other =
      StoreDirectory::create(base::posix_fs(), directory_.path("t"), small_options());
  ASSERT_NE(other->superblock().store_id, store_->superblock().store_id);
  Exchanging fs(base::posix_fs());
  fs.other = other->superblock_path();
  const auto opened = StoreDirectory::open(fs, directory_.path("s"));
  EXPECT_EQ(opened->superblock().store_id, store_->superblock().store_id);
}

// No pack gets the number that follows theirs (Roots::reached_bytes).
TEST_F(Faults, LeftoverPacksOfACrashAreSkipped) {
  store_->create_branch("side", 16 * kPageBytes, 0);
  auto side = BranchWriter::open(*store_, "side");
  const std::uint64_t first = side->head().branch_id << 32 | 1;
  const std::vector<std::byte> garbage(100, std::byte{7});
  const std::vector<std::uint64_t> left{first, first + 2, first + 3};
  for (const std::uint64_t pack : left) {
    base::posix_fs()
        .open(store_->packs().path_of(pack), base::OpenMode::create_new)
        ->pwrite(garbage, 0);
  }
  Model model(16);
  model.fill(3, random_);
  commit(*side, model, true);
  EXPECT_EQ(side->head().active_pack, first + 5);
  EXPECT_EQ(side->head().next_pack_number, 7u);
  expect_same(*open_version(*store_, "side"), model.bytes);
  for (const std::uint64_t pack : left) {
    EXPECT_EQ(base::read_whole(fs_, store_->packs().path_of(pack), 1000), garbage);
  }
}

// An interrupted checkpoint may have sealed the pack. The trailer must not stay at the end of a
// file to which the branch still appends.
TEST_F(Faults, TheTailOfACrashedCheckpointIsTruncated) {
  const format::Version head = writer_->head();
  writer_.reset();
  const auto file = fs_.open(store_->packs().path_of(head.active_pack), base::OpenMode::read_write);
  EXPECT_EQ(file->size_bytes(), head.active_pack_end_bytes);
  auto tail = std::vector<std::byte>(8000, std::byte{7});
  const auto trailer = format::encode_pack_trailer(head.active_pack, head.active_pack_end_bytes,
                                                   store_->checksum_seed());
  tail.insert(tail.end(), trailer.begin(), trailer.end());
  file->pwrite(tail, head.active_pack_end_bytes);
  expect_last_commit();  // verify accepts the tail
  writer_ = BranchWriter::open(*store_, "main");
  EXPECT_EQ(file->size_bytes(), head.active_pack_end_bytes);
  try_commit(5, true, true);
  expect_last_commit();
}

TEST_F(Faults, AFailedCreationLeavesNoStoreOrBranch) {
  for (const Call call : {Call::create, Call::write, Call::sync, Call::rename, Call::mkdir}) {
    const std::string path = directory_.path("n" + std::to_string(static_cast<int>(call)));
    fs_.fail_nth(call, 1, Errc::io);
    error_text(Errc::io, [&] { StoreDirectory::create(fs_, path, small_options()); });
    fs_.heal();
    if (std::filesystem::exists(path)) {
      error_text(Errc::not_a_store, [&] { StoreDirectory::open(fs_, path); });
    }
    fs_.fail_nth(call, 1, Errc::io);
    error_text(Errc::io, [&] { store_->create_branch("new", 4096, 0); });
    fs_.heal();
    EXPECT_FALSE(has_branch(*store_, "new"));
    EXPECT_EQ(store_->branch_names().size(), 1u);
  }
  store_->create_branch("new", 4096, 0);
  EXPECT_TRUE(has_branch(*store_, "new"));
}

TEST_F(Faults, FailedSnapshotsDoNotExist) {
  for (const Call call : {Call::create, Call::write, Call::sync, Call::rename}) {
    fs_.fail_nth(call, 1, Errc::no_space);
    error_text(Errc::no_space, [&] { writer_->publish_snapshot("s", ""); });
    fs_.heal();
    EXPECT_FALSE(has_snapshot(*store_, "s"));
  }
  writer_->publish_snapshot("s", "");
  expect_same(*open_version(*store_, "s"), model_.bytes);
  error_text(Errc::already_exists, [&] { writer_->publish_snapshot("s", ""); });
  error_text(Errc::already_exists, [&] { writer_->publish_snapshot("main", ""); });
  error_text(Errc::invalid_argument, [&] { writer_->publish_snapshot("../s", ""); });
}

TEST_F(Faults, AReadOnlyStoreIsRead) {
  writer_->publish_snapshot("s", "");
  try_commit(3, false, false);
  // Not closed cleanly: the journal has a commit.
  copy_directory(directory_.path("s"), directory_.path("ro"));
  const std::string root = directory_.path("ro");
  for (const auto& e : std::filesystem::recursive_directory_iterator(root)) {
    std::filesystem::permissions(
        e.path(), e.is_directory() ? std::filesystem::perms(0555) : std::filesystem::perms(0444));
  }
  std::filesystem::permissions(root, std::filesystem::perms(0555));
  // Root may write to any file, so the test checks that no call writes.
  FaultFs counting(base::posix_fs());
  auto store = StoreDirectory::open(counting, root);
  expect_same(*open_version(*store, "main"), model_.bytes);
  open_version(*store, "s");
  EXPECT_TRUE(verify_store(*store, true, {}).damages.empty());
  for (const Call call : {Call::create, Call::write, Call::sync, Call::truncate, Call::punch,
                          Call::rename, Call::unlink, Call::mkdir, Call::sync_dir}) {
    EXPECT_EQ(counting.seen(call), 0u) << static_cast<int>(call);
  }
  if (::geteuid() != 0) {
    EXPECT_THROW(BranchWriter::open(*store, "main"), Error);
  }
}

}  // namespace
}  // namespace vellum::store::test
