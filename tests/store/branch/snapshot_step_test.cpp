// A commit and the name of its snapshot are one step: a power cut or an error leaves both or
// neither. Afterwards, the last snapshot is the parent of the branch.
#include "store/branch/changed_branch.hpp"
#include "store/branch/fault_fs.hpp"
#include "store/check/check.hpp"
#include "store/journal/read_journal.hpp"
#include "store/signature/sign_key.hpp"
#include "store/signature/signed_versions.hpp"
#include "store/support.hpp"
#include "support/disk/crash_images_lib.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kStepPages = 48;

void commit_as(StoreDirectory& store, BranchWriter& writer, Model& model, const std::string& name) {
  base::Compressor compressor;
  const NameLock claim = claim_name(store, name);
  auto c = writer.begin();
  c->add(model.take(4, compressor));
  c->finish_as(claim, meta_for(model));
}

std::vector<std::byte> content(StoreDirectory& store, const std::string& name) {
  std::vector<std::byte> out(kStepPages * kPageBytes);
  open_version(store, name)->read(0, kStepPages, out.data());
  return out;
}

// The store after a power cut at one call of the snapshot "b".
class CutSnapshot {
 public:
  explicit CutSnapshot(std::uint64_t seed) : random_(seed) {
    fs_ = std::make_unique<sim::SimFs>();
    fs_->start_log();
    auto store = StoreDirectory::create(*fs_, "/s", small_options());
    store->create_branch("main", kStepPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < kStepPages; ++p) before_.fill(p, random_);
    commit_as(*store, *writer, before_, "a");
    before_.store64(3, 0, 77);
    commit(*writer, before_, false);
    after_ = before_;
    after_.fill(5, random_);
    after_.store64(7, 8, random_());
  }

  // False: the snapshot needed fewer calls.
  bool cut_at(std::uint64_t calls) {
    bool done = false;
    try {
      auto store = StoreDirectory::open(*fs_, "/s");
      auto writer = BranchWriter::open(*store, "main");
      fs_->cut_power_at(calls);
      Model model = after_;
      commit_as(*store, *writer, model, "b");
      done = true;
    } catch (const sim::PowerCut&) {
    }
    fs_ = sim::next_boot(*fs_, random_);
    return !done;
  }

  // `leaves_pack`: a pull rewrites the branch's active pack first. `keys`: of those who sign; none: they
  // do not.
  void check(bool leaves_pack, const std::vector<PublicKey>& keys) {
    auto store = StoreDirectory::open(*fs_, "/s");
    const bool made = has_snapshot(*store, "b");
    expect_head(*store, made);  // before any writer repairs the store
    if (leaves_pack) {
      leave_active_packs(*store);
      expect_head(*store, made);
    }
    {
      auto writer = BranchWriter::open(*store, "main");
      EXPECT_EQ(writer->head().parent, made ? "b" : "a");
      EXPECT_EQ(writer->head().sequence, made ? 3u : 2u);
      base::Compressor compressor;
      Model next = made ? after_ : before_;
      (void)next.take(4, compressor);  // the current content is no change
      next.store64(11, 0, 6);
      commit_as(*store, *writer, next, "c");
      EXPECT_TRUE(content(*store, "c") == next.bytes);
    }
    EXPECT_EQ(read_snapshot(*store, "c").version.parent, made ? "b" : "a");
    EXPECT_EQ(read_snapshot(*store, "c").version.pages_changed, made ? 1u : 2u);
    for (const Damage& d : verify_store(*store, true, {}).damages) {
      ADD_FAILURE() << d.object << ": " << d.reason;
    }
    if (keys.empty()) return;
    SignatureChecker checker(*store, keys);
    for (const char* name : {"a", "b", "c"}) {
      if (name[0] == 'b' && !made) continue;
      EXPECT_EQ(checker.check(name).problem, "") << name;
    }
    EXPECT_EQ(read_snapshot(*store, "c").signature->number, made ? 3u : 2u);
  }

 private:
  void expect_head(StoreDirectory& store, bool made) {
    EXPECT_TRUE(content(store, "main") == (made ? after_ : before_).bytes);
    EXPECT_EQ(resolve_version(store, "main").version.parent, made ? "b" : "a");
    if (made) {
      EXPECT_TRUE(content(store, "b") == after_.bytes);
    }
  }

  void leave_active_packs(StoreDirectory& store) {
    const auto file = fs_->open(store.journal_path("main"), base::OpenMode::read_only);
    for (const auto& version : read_base_versions(*file, store.superblock().store_id)) {
      if (version.active_pack == 0) continue;
      leave_pack(store, version.active_pack);
      for (const auto& base : read_base_versions(*file, store.superblock().store_id)) {
        EXPECT_NE(base.active_pack, version.active_pack) << "a power cut may restore that frame";
      }
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<sim::SimFs> fs_;
  Model before_{kStepPages}, after_{kStepPages};
};

TEST(SnapshotStep, APowerCutAtAnyCallLeavesBothOrNeither) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const SigningProcess process(seed > 2);
    const auto keys = seed > 2 ? process.keys() : std::vector<PublicKey>();
    std::uint64_t calls = 1;
    for (bool cut = true; cut; ++calls) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", call " + std::to_string(calls));
      CutSnapshot snapshot(seed);
      cut = snapshot.cut_at(calls);
      snapshot.check(seed % 2 == 0, keys);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(calls, 8u);
  }
}

class SnapshotError : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Signed, SnapshotError, ::testing::Bool());

TEST_P(SnapshotError, LeavesNoSnapshotAndTheHeadAsItWas) {
  const SigningProcess process(GetParam());
  TempDirectory directory;
  FaultFs fs{base::posix_fs()};
  auto store = StoreDirectory::create(fs, directory.path("s"), small_options());
  store->create_branch("main", kStepPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  Model model(kStepPages);
  std::mt19937_64 random(3);
  for (PageNumber p = 0; p < kStepPages; ++p) model.fill(p, random);
  commit_as(*store, *writer, model, "a");
  for (const Call call : {Call::create, Call::write, Call::rename}) {
    bool failed = true;
    for (std::uint64_t nth = 1; failed; ++nth) {
      Model attempt = model;
      attempt.store64(nth % kStepPages, 8, random());
      fs.fail_nth(call, nth, Errc::no_space);
      const std::string name = "s" + std::to_string(static_cast<int>(call)) + std::to_string(nth);
      try {
        commit_as(*store, *writer, attempt, name);
        failed = false;
        model = attempt;
      } catch (const Error& e) {
        EXPECT_STREQ(errc_name(e.code()), "no_space") << e.what();
      }
      fs.heal();
      EXPECT_EQ(has_snapshot(*store, name), !failed) << name;
      EXPECT_TRUE(content(*store, "main") == model.bytes) << name;
    }
  }
  commit_as(*store, *writer, model, "last");
  EXPECT_EQ(writer->head().parent, "last");
  if (GetParam()) {
    EXPECT_EQ(SignatureChecker(*store, process.keys()).check("last").problem, "");
  }
  for (const Damage& d : verify_store(*store, true, {}).damages) {
    ADD_FAILURE() << d.object << ": " << d.reason;
  }
}

// The journal is as it was before its epoch began, and another head replaces it.
TEST(SnapshotStep, AKilledWritersSnapshotIsNotOverwritten) {
  TempDirectory directory;
  const std::string path = directory.path("s");
  Model model(kStepPages);
  std::mt19937_64 random(4);
  std::vector<std::byte> journal;
  {
    auto store = StoreDirectory::create(base::posix_fs(), path, small_options());
    store->create_branch("main", kStepPages * kPageBytes, 0);
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < kStepPages; ++p) model.fill(p, random);
    commit(*writer, model, true);
    journal = base::read_whole(base::posix_fs(), path + "/branches/main/journal", 1u << 20);
    model.fill(5, random);
    commit_as(*store, *writer, model, "kept");
  }
  base::posix_fs()
      .open(path + "/branches/main/journal", base::OpenMode::read_write)
      ->pwrite(journal, 0);
  auto store = StoreDirectory::open(base::posix_fs(), path);
  auto writer = BranchWriter::open(*store, "main");
  EXPECT_EQ(writer->head().parent, "kept");
  Model next = model;
  next.fill(6, random);
  commit(*writer, next, true);
  EXPECT_TRUE(content(*store, "kept") == model.bytes);
  EXPECT_TRUE(content(*store, "main") == next.bytes);
}

}  // namespace
}  // namespace vellum::store::test
