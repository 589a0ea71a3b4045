// Pushes to a remote, pulls and clones.
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "remote/pieces/known_pieces.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/remote_samples.hpp"
#include "store/gc/gc.hpp"

namespace vellum::remote::test {
namespace {

class PushTest : public RemoteTest {};

TEST_F(PushTest, ACloneHasAllVersionsBitForBit) {
  make(6);
  store->create_branch_at("side", store::read_snapshot(*store, "s2").version, "s2");
  contents["side"] = contents["s2"];
  const auto writer = line.step_and_stay();
  contents["main"] = line.bytes();
  const PushReport report = push_all(*store);
  EXPECT_EQ(report.versions.size(), 8u);
  EXPECT_GT(report.bytes_uploaded, 0u);
  const auto copy = clone_to("c");
  expect_contents(*copy, contents);
  expect_same_snapshots(*store, *copy);
  EXPECT_EQ(copy->superblock().store_id, store->superblock().store_id);
  EXPECT_EQ(copy->read_branch("main").journal.head_sequence(),
            store->read_branch("main").journal.head_sequence());
  expect_good_remote();
  // Writers and gc work in the copy.
  Line there(*copy, "main", 9);
  there.go_on(line);
  there.step("t0");
  contents["t0"] = contents["main"] = there.bytes();
  store::collect_garbage(*copy, false, nullptr);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), contents);
}

TEST_F(PushTest, AnEmptyBranchIsPushed) {
  store->create_branch("empty", 4096 * 4, 0);
  push_all(*store);
  const auto copy = clone_to("c");
  EXPECT_EQ(store::test::open_version(*copy, "empty")->region_bytes(), 4u * 4096);
  expect_good_remote();
}

TEST_F(PushTest, ExistingObjectsAreNotPushedAgain) {
  make(3);
  const PushReport first = push_all(*store);
  const PushReport again = push_all(*store);
  EXPECT_EQ(again.bytes_uploaded, 0u);
  for (const PushedVersion& name : again.versions) EXPECT_TRUE(name.was_there) << name.name;
  step("s3", 2);
  const PushReport more = push_names(*store, {"s3"});
  EXPECT_LT(more.bytes_uploaded, first.bytes_uploaded / 3);
  EXPECT_GT(more.pieces_used_again, 0u);
  expect_contents(*clone_to("c", {"s3"}), {{"s3", contents["s3"]}});
}

std::ptrdiff_t staging_branches(const StoreDirectory& store) {
  return std::ranges::count_if(store.branch_names(), store::is_staging_name);
}

// Each push reads the remote's file and the cache again, as a process of its own does.
TEST_F(PushTest, EachPushOfAnOpenWriterSendsOnlyWhatIsNew) {
  make(1);
  push_all(*store);
  auto writer = line.step_and_stay();
  std::vector<std::uint64_t> sent;
  for (int i = 0; i < 25; ++i) {
    line.step_with(*writer);
    sent.push_back(push_names(*store, {"main"}).bytes_uploaded);
  }
  EXPECT_LT(sent.back(), 3 * sent.front());  // with all commits of the journal: 12 times as many
  EXPECT_EQ(staging_branches(*store), 1);
  contents["main"] = line.bytes();
  expect_contents(*clone_to("a"), contents);
  // What a push keeps is not the store's: gc removes it. After a checkpoint, the next push goes on with
  // its packs.
  store::collect_garbage(*store, false, nullptr);
  EXPECT_EQ(staging_branches(*store), 0);
  line.step_with(*writer);
  contents["main"] = line.bytes();
  push_names(*store, {"main"});
  expect_contents(*clone_to("b"), contents);
  EXPECT_EQ(staging_branches(*store), 1);
  writer.reset();
  step("s1");
  push_all(*store);
  EXPECT_EQ(staging_branches(*store), 1);
  store::collect_garbage(*store, false, nullptr);
  EXPECT_EQ(staging_branches(*store), 0);
  expect_contents(*clone_to("c"), contents);
  expect_good_remote();
  store::test::expect_no_damage(*store);
}

// Pieces of one record each; a version needs all of them.
struct SmallPieces {
  explicit SmallPieces(std::uint64_t count) {
    for (std::uint64_t i = 1; i <= count; ++i) {
      const format::RecordRef ref{(3ULL << 32) | 1, 64 * i, 7};
      needed.push_back({format::RecordType::pages, ref, 64, ref, {}});
      known.add(name(i), {needed.back()});
    }
  }
  static PieceName name(std::uint64_t number) {
    PieceName out{{1, {}}, 200, 136};
    std::memcpy(out.content.hash.data(), &number, sizeof number);
    return out;
  }
  KnownPieces known;
  std::vector<PieceRecord> needed;
};

TEST(KnownPiecesTest, MoreThan128SmallPiecesAreMergedAndStayMerged) {
  const SmallPieces few(128);
  EXPECT_EQ(few.known.plan(few.needed).used.size(), 128u);
  SmallPieces many(129);
  const auto plan = many.known.plan(many.needed);
  EXPECT_LE(plan.used.size(), 64u);
  std::vector<PieceRecord> merged;
  for (const std::size_t i : plan.missing) merged.push_back(many.needed[i]);
  ASSERT_GE(merged.size(), 65u);
  many.known.add(SmallPieces::name(1000), merged);
  const auto next = many.known.plan(many.needed);
  EXPECT_TRUE(next.missing.empty());
  EXPECT_EQ(next.used.size(), plan.used.size() + 1);
}

TEST_F(PushTest, ManySmallPushesDoNotResultInManyPieces) {
  make(1);
  for (int i = 0; i < 131; ++i) {
    step("", 1, false);
    push_names(*store, {"main"});
  }
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  const auto head = remote.newest_head().head;
  EXPECT_LE(remote.list(head.find("main")->list).size(), 130u);
  expect_contents(*clone_to("c"), {{"main", contents["main"]}});
}

TEST_F(PushTest, APullFetchesNewVersionsAndFollowsBranches) {
  make(2);
  push_all(*store);
  const auto copy = clone_to("c");
  step("s2");
  step("s3");
  step("", 2, false);
  push_all(*store);
  const PullReport report = pull_names(*copy);
  EXPECT_EQ(report.versions.size(), 5u);
  expect_contents(*copy, contents);
  expect_same_snapshots(*store, *copy);
  // Nothing remains to push.
  EXPECT_EQ(pull_names(*copy).pieces_read, 0u);
  store::collect_garbage(*copy, false, nullptr);
  expect_contents(*copy, contents);
}

TEST_F(PushTest, TwoStoresTakeTurnsAndNeverBothWin) {
  make(2);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "main", 77);
  there.go_on(line);
  there.step("");
  step("");
  push_names(*copy, {"main"});
  // This store has not seen that push.
  const std::string text =
      store::test::error_text(Errc::busy, [&] { push_names(*store, {"main"}); });
  EXPECT_TRUE(store::test::contains(text, "--take-over")) << text;
  EXPECT_ERRC(pull_names(*store, {"main"}), Errc::io);  // both have changed
  const PushReport taken = push_names(*store, {"main"}, nullptr, true);
  EXPECT_EQ(taken.versions[0].epoch, 2u);
  EXPECT_ERRC(push_names(*copy, {"main"}), Errc::busy);
  expect_contents(*clone_to("d", {"main"}), {{"main", line.bytes()}});
}

TEST_F(PushTest, TwoStoresPushABranchInTurn) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "main", 78);
  there.go_on(line);
  for (int i = 0; i < 3; ++i) {
    there.step("");
    push_names(*copy, {"main"});
    pull_names(*store, {"main"});
    store::test::expect_same(*store::test::open_version(*store, "main"), there.bytes());
    line.go_on(there);
    line.step("");
    push_names(*store, {"main"});
    pull_names(*copy, {"main"});
    there.go_on(line);
  }
  expect_contents(*copy, {{"main", line.bytes()}, {"s0", contents["s0"]}});
  expect_contents(*store, {{"main", line.bytes()}, {"s0", contents["s0"]}});
}

TEST_F(PushTest, ALocalBranchThatIsAheadStays) {
  make(1);
  push_all(*store);
  step("");
  const PullReport report = pull_names(*store, {"main"});
  EXPECT_TRUE(report.versions[0].is_ahead);
  expect_contents(*store, contents);
}

TEST_F(PushTest, NamesOfOtherVersionsAreRefused) {
  make(1);
  push_all(*store);
  store->remove_snapshot("s0");
  step("s0");
  EXPECT_ERRC(push_names(*store, {"s0"}), Errc::already_exists);
  EXPECT_ERRC(pull_names(*store, {"s0"}), Errc::already_exists);
  EXPECT_ERRC(push_names(*store, {"nothing"}), Errc::not_found);
  EXPECT_ERRC(pull_names(*store, {"nothing"}), Errc::not_found);
  const auto other = create_store(base::posix_fs(), dir.path("o"), remote_options());
  other->create_branch("main", 4096, 0);
  add_remote_file(*other, "origin", url(), false);
  EXPECT_ERRC(push_names(*other, {"main"}), Errc::invalid_argument);
  EXPECT_ERRC(Session(*store, "unknown"), Errc::not_found);
  EXPECT_ERRC(add_remote_file(*store, "origin", url(), false), Errc::already_exists);
  EXPECT_ERRC(clone(base::posix_fs(), "file://" + dir.path("none"), dir.path("c"), {}, nullptr),
              Errc::not_found);
  EXPECT_ERRC(clone(base::posix_fs(), url(), dir.path("o"), {}, nullptr), Errc::already_exists);
}

TEST_F(PushTest, OnePushAtATime) {
  make(1);
  const Session session(*store, "origin");
  EXPECT_ERRC(push_names(*store, {"main"}), Errc::busy);
}

TEST_F(PushTest, AServerThatLetsTwoWinHasOneWriter) {
  make(1);
  remove_remote_file(*store, "origin");
  add_remote_file(*store, "origin", url(), true);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "main", 3);
  there.go_on(line);
  there.step("");
  const std::string text =
      store::test::error_text(Errc::busy, [&] { push_names(*copy, {"main"}); });
  EXPECT_TRUE(store::test::contains(text, "two writers")) << text;
  step("");
  push_names(*store, {"main"});
}

TEST_F(PushTest, DivergedCopiesOfAStoreAreNeverMixed) {
  make(1);
  push_all(*store);
  store::test::copy_directory(dir.path("s"), dir.path("twin"));
  const auto twin = StoreDirectory::open(base::posix_fs(), dir.path("twin"));
  Line other(*twin, "main", 99);
  other.go_on(line);
  other.step("t1");
  step("s1");
  push_names(*store, {"s1", "main"});
  EXPECT_ERRC(push_names(*twin, {"main"}), Errc::busy);
  push_names(*twin, {"t1"});
  // Each of them can be cloned, and the store refuses the other's records.
  expect_contents(*clone_to("c1", {"s1"}), {{"s1", contents["s1"]}});
  expect_contents(*clone_to("c2", {"t1"}), {{"t1", other.bytes()}});
  EXPECT_ERRC(pull_names(*store, {"t1"}), Errc::corrupted);
  expect_contents(*store, contents);
}

TEST_F(PushTest, RewrittenPacksKeepTheirForm) {
  make(8);
  push_names(*store, {"s0", "s1"});
  for (const char* name : {"s0", "s2", "s4"}) {
    store->remove_snapshot(name);
    contents.erase(name);
  }
  store::collect_garbage(*store, false, nullptr, 12);
  ASSERT_GT(store::test::translated_packs(*store), 0u);
  push_all(*store);
  const auto copy = clone_to("c", {"s1", "s3", "s5", "s6", "s7", "main"});
  expect_contents(*copy, contents);
  const auto whole = clone_to("d");
  contents["s0"] = contents["s0"];
  EXPECT_TRUE(store::has_snapshot(*whole, "s0"));
  store::test::expect_no_damage(*whole);
  // A copy with its own form of a pack gets more records of it.
  store::collect_garbage(*copy, false, nullptr, 15);
  pull_names(*copy);
  store::test::expect_no_damage(*copy);
  EXPECT_TRUE(store::has_snapshot(*copy, "s0"));
}

TEST_F(PushTest, ACloneHasPacksThatOnlyARootNames) {
  int bare = 0;
  push_each_version([&](const std::string& name) {
    const auto copy = clone_to("only-" + name, {name});
    expect_contents(*copy, {{name, contents[name]}});
    bare += bare_packs("only-" + name);
    if (bare == 0 || name != "s29") return;
    pull_names(*copy);  // all others, which need records of rewritten packs
    contents.erase("main");
    expect_contents(*copy, contents);
    store::collect_garbage(*copy, false, nullptr, 15);
    expect_contents(*copy, contents);
  });
  EXPECT_GT(bare, 0) << "no version had such a pack";
}

// Then several pieces have the same record, in several forms.
TEST_F(PushTest, ACloneOfManyPushesBetweenRewritesIsComplete) {
  line.begin();
  for (int i = 0; i < 12; ++i) {
    step("s" + std::to_string(i), 3);
    push_all(*store);
    if (i % 4 == 3) store::collect_garbage(*store, false, nullptr, 9);
    if (i == 5) expect_contents(*clone_to("early"), contents);
  }
  for (const char* name : {"s2", "s5"}) {
    store->remove_snapshot(name);
    contents.erase(name);
  }
  store::collect_garbage(*store, false, nullptr, 9);
  step("last", 40);
  push_all(*store);
  const auto copy = clone_to("copy");
  expect_contents(*copy, contents);
  const auto early = StoreDirectory::open(base::posix_fs(), dir.path("early"));
  pull_names(*early);
  expect_contents(*early, contents);
}

TEST_F(PushTest, AnInterruptedCloneResumes) {
  make(4);
  push_all(*store);
  std::filesystem::create_directory(dir.path("c.vellum-clone"));
  store::test::copy_directory(dir.path("s"), dir.path("x"));
  expect_contents(*clone_to("c"), contents);
  EXPECT_FALSE(std::filesystem::exists(dir.path("c.vellum-clone")));
}

TEST_F(PushTest, AWrongCacheIsNotUsed) {
  make(3);
  push_all(*store);
  for (const auto& entry : std::filesystem::directory_iterator(dir.path("s/remotes/cache"))) {
    std::filesystem::resize_file(entry.path(), std::filesystem::file_size(entry.path()) / 2);
  }
  step("s3");
  push_all(*store);
  expect_contents(*clone_to("c"), contents);
}

TEST_F(PushTest, GcDeletesForgottenVersionsAndNothingElse) {
  make(6);
  push_all(*store);
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  EXPECT_ERRC(forget_names(remote, {"s1", "nothing"}), Errc::not_found);
  for (const char* name : {"s1", "s2", "s3"}) contents.erase(name);
  forget_names(remote, {"s1", "s2", "s3"});
  const RemoteSpace before = space_of_remote(remote);
  EXPECT_LT(before.needed_bytes, before.object_bytes);
  const RemoteGcReport dry = collect_remote(remote, true, nullptr);
  EXPECT_EQ(space_of_remote(remote).objects, before.objects);
  const RemoteGcReport report = collect_remote(remote, false, nullptr);
  EXPECT_EQ(report.objects_removed, dry.objects_removed);
  EXPECT_GT(report.objects_removed, 0u);
  const RemoteSpace after = space_of_remote(remote);
  EXPECT_EQ(after.needed_bytes, after.object_bytes);
  EXPECT_EQ(after.heads, 1u);
  EXPECT_EQ(after.generation, before.generation + 1);
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
  step("s6");
  push_all(*store);
  expect_contents(*clone_to("d"), contents);
}

// Runs a gc of the remote when a push has uploaded all objects but its head.
class GcBeforeHead final : public DirectoryEngine {
 public:
  GcBeforeHead(std::string path, const format::StoreSeal& seal, int times)
      : DirectoryEngine(base::posix_fs(), std::move(path)), seal_(seal), times_(times) {}
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    if (key.starts_with(kHeadPrefix) && times_ > 0) {
      --times_;
      DirectoryEngine other(base::posix_fs(), url().substr(7));
      collect_remote(Remote(other, seal_), false, nullptr);
    }
    return DirectoryEngine::put_if_absent(key, bytes);
  }

 private:
  const format::StoreSeal seal_;
  int times_;
};

TEST_F(PushTest, AGcDuringAPushDeletesNothingThatItNeeds) {
  make(2);
  push_all(*store);
  step("s2");
  step("s3");
  push_all(*store, std::make_unique<GcBeforeHead>(dir.path("r"), store->store_seal(), 3));
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
}

// Pauses between reading the newest head and publishing the next, while others push and collect.
class SleepsBeforeHead final : public DirectoryEngine {
 public:
  SleepsBeforeHead(std::string path, std::function<void()> meanwhile)
      : DirectoryEngine(base::posix_fs(), std::move(path)), meanwhile_(std::move(meanwhile)) {}
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    if (key.starts_with(kHeadPrefix) && meanwhile_ != nullptr) std::exchange(meanwhile_, nullptr)();
    return DirectoryEngine::put_if_absent(key, bytes);
  }

 private:
  std::function<void()> meanwhile_;
};

TEST_F(PushTest, ALateHeadDoesNotCountWhereAnotherWasDeleted) {
  make(2);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "main", 4);
  there.go_on(line);
  const auto others = [&] {
    there.step("t0");
    push_names(*copy, {"t0"});
    const auto again = objects();
    collect_remote(Remote(*again, store->store_seal()), false, nullptr);
    there.step("t1");
    push_names(*copy, {"t1"});
  };
  step("s2");
  push_all(*store, std::make_unique<SleepsBeforeHead>(dir.path("r"), others));
  expect_good_remote();
  const auto all = clone_to("d");
  expect_contents(*all, contents);
  EXPECT_TRUE(store::has_snapshot(*all, "t0"));
  store::test::expect_same(*store::test::open_version(*all, "t1"), there.bytes());
}

// Notes the heads that are removed, in this order; removes none of them while it is killed, and
// no more than `left`.
class NotesRemovedHeads final : public DirectoryEngine {
 public:
  explicit NotesRemovedHeads(std::string path)
      : DirectoryEngine(base::posix_fs(), std::move(path)) {}
  void remove(const std::string& key) override {
    if (key.starts_with(kHeadPrefix)) {
      const std::lock_guard lock(mutex_);
      if (is_killed || removed.size() >= left) throw Error(Errc::io, "killed");
      removed.push_back(*parse_head_key(key));
    }
    DirectoryEngine::remove(key);
  }
  bool is_killed = false;
  std::size_t left = SIZE_MAX;
  std::vector<std::uint64_t> removed;

 private:
  std::mutex mutex_;
};

TEST_F(PushTest, GcDeletesEachHeadAfterItsWitness) {
  make(1);
  push_all(*store);
  step("s1");
  push_all(*store);
  NotesRemovedHeads engine(dir.path("r"));
  const Remote remote(engine, store->store_seal());
  engine.is_killed = true;
  EXPECT_ERRC(collect_remote(remote, false, nullptr), Errc::io);
  engine.is_killed = false;
  step("s2");
  push_all(*store);
  collect_remote(remote, false, nullptr);
  // Head 3 is the boundary of the gc that was killed.
  ASSERT_GE(engine.removed.size(), 4u);
  EXPECT_EQ(engine.removed[0], 1u);
  EXPECT_EQ(engine.removed[1], 3u);
  const Head head = remote.newest_head().head;
  EXPECT_EQ(head.number, 5u);
  EXPECT_TRUE(head.is_witness);
  expect_good_remote();
  step("s3");
  push_all(*store);
  expect_contents(*clone_to("c"), contents);
}

// Wherever a gc is killed, whoever puts a deleted head again notices it.
TEST_F(PushTest, ADeletedHeadNeverCountsAgain) {
  constexpr std::uint64_t kHeads = kDeletionRounds + 3;
  make(1);
  push_all(*store);
  for (std::uint64_t i = 1; i < kHeads; ++i) {
    step("s" + std::to_string(i));
    push_all(*store);
  }
  const auto seal = store->store_seal();
  std::vector<StoredHead> heads(1);
  const auto there = objects();
  const Remote before(*there, seal);
  for (std::uint64_t i = 1; i <= kHeads; ++i) heads.push_back(before.newest_head(i));
  const std::string backup = dir.path("backup");
  std::filesystem::copy(dir.path("r"), backup, std::filesystem::copy_options::recursive);
  std::size_t late = 0;
  for (std::size_t left = 0; left <= kHeads; ++left) {
    std::filesystem::remove_all(dir.path("r"));
    std::filesystem::copy(backup, dir.path("r"), std::filesystem::copy_options::recursive);
    NotesRemovedHeads engine(dir.path("r"));
    const Remote remote(engine, seal);
    engine.left = left;
    if (left < kHeads) {
      EXPECT_ERRC(collect_remote(remote, false, nullptr), Errc::io);
    } else {
      collect_remote(remote, false, nullptr);
    }
    EXPECT_EQ(engine.removed.size(), left);
    engine.left = SIZE_MAX;
    const std::vector<std::uint64_t> removed = engine.removed;
    for (const std::uint64_t number : removed) {
      if (number == 1) continue;  // it has no base
      const StoredHead& base = heads[number - 1];
      EXPECT_FALSE(remote.publish(base, base.head, nullptr, {}, nullptr).has_value())
          << "head " << number << " after " << left;
      there->remove(head_key(number));
      ++late;
    }
  }
  EXPECT_GE(late, kHeads * kHeads / 2 - kHeads);
}

TEST_F(PushTest, ARemoteOfAnOlderVellumIsContinued) {
  make(2);
  push_all(*store);
  const auto there = objects();
  const std::string key = head_key(1);
  there->put(key, samples::as_old_head(there->get(key, 1u << 20)));
  there->remove(kNewestKey);
  std::filesystem::remove_all(dir.path("s/remotes/cache"));  // it has the head in its new form
  expect_contents(*clone_to("c"), contents);
  step("s2");
  push_all(*store);
  const Remote remote(*there, store->store_seal());
  const Head head = remote.newest_head().head;
  // To this store, its own head is lost: it has another hash now.
  EXPECT_GT(head.number, 1u << 20);
  EXPECT_FALSE(head.is_witness);
  EXPECT_EQ(head.earlier_witness.number, 2u);
  collect_remote(remote, false, nullptr);
  expect_good_remote();
  expect_contents(*clone_to("d"), contents);
}

TEST_F(PushTest, EveryDamagedObjectIsNamed) {
  make(3);
  push_all(*store);
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  int done = 0;
  for (const ObjectInfo& object : there->list("", 1000)) {
    const auto good = there->get(object.key, 1u << 30);
    for (const int kind : {0, 1, 2, 3}) {
      auto bad = good;
      if (kind == 0) bad[bad.size() / 2] ^= std::byte{4};
      if (kind == 1) bad.resize(bad.size() - 1);
      if (kind == 2) bad.push_back(std::byte{0});
      there->put(object.key, bad);
      if (kind == 3) there->remove(object.key);
      const bool is_content =
          object.key.starts_with(kPiecePrefix) || object.key.starts_with(kListPrefix);
      if (is_content) {
        const auto damages = verify_remote(remote, true, nullptr).damages;
        ASSERT_EQ(damages.size(), 1u) << object.key << " " << kind;
        EXPECT_EQ(damages[0].object, object.key);
        EXPECT_FALSE(damages[0].versions.empty());
      }
      // The remote has only one head, so without it there are no versions. The copy of the newest
      // head is not needed.
      const bool is_empty = kind == 3 && object.key.starts_with(kHeadPrefix);
      const std::string target = "c" + std::to_string(done++);
      try {
        clone_to(target);
        EXPECT_TRUE(is_empty || object.key == kNewestKey) << object.key << " " << kind;
      } catch (const Error& e) {
        EXPECT_TRUE(e.code() == Errc::corrupted || e.code() == Errc::not_found ||
                    e.code() == Errc::not_a_store)
            << e.what();
        EXPECT_TRUE(store::test::contains(e.what(), object.key)) << e.what();
      }
      there->put(object.key, good);
    }
  }
  expect_good_remote();
  expect_contents(*clone_to("good"), contents);
}

}  // namespace
}  // namespace vellum::remote::test
