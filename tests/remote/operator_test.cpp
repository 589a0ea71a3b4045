// An operator's tasks with a remote: restores, retention, drills, lost and damaged buckets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/bytes/hex.hpp"
#include "base/expect_error.hpp"
#include "base/files/new_file.hpp"
#include "remote/failing_objects.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/repair_remote.hpp"
#include "remote/replicator.hpp"
#include "remote/session/missing_pieces.hpp"
#include "store/catalog/snapshots/refs.hpp"
#include "store/signature/sign_key.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class OperatorTest : public RemoteTest {
 protected:
  static PullReport pull_taking_over(StoreDirectory& store) {
    Session session(store, "origin");
    return pull(session, {{}, false, true}, nullptr);
  }
  // A bucket that is restored from an older copy.
  void copy_remote() { fs::copy(dir.path("r"), dir.path("old"), fs::copy_options::recursive); }
  void restore_remote() {
    fs::remove_all(dir.path("r"));
    fs::rename(dir.path("old"), dir.path("r"));
  }
  std::vector<std::string> keys(const std::string& prefix) const {
    std::vector<std::string> out;
    for (const ObjectInfo& object : objects()->list(prefix, SIZE_MAX)) out.push_back(object.key);
    return out;
  }
  Head head() const {
    const auto there = objects();
    return Remote(*there, store->store_seal()).newest_head().head;
  }
  static bool replicate(StoreDirectory& from, const std::string& url, bool take_over = false) {
    return Replicator(from, url, {1000ms, take_over}).push_new();
  }
  static std::uint64_t order_of(StoreDirectory& store, const std::string& name) {
    return store::read_snapshot(store, name).order;
  }
};

TEST_F(OperatorTest, SnapshotsKeepTheirOrderAndThoseOfACloneFollow) {
  make(4);
  push_all(*store);
  const auto copy = clone_to("c", {"s2", "main"});
  Line there(*copy, "main", 7);
  there.go_on(line);
  there.step("new");
  EXPECT_GT(order_of(*copy, "new"), order_of(*store, "s3"));
  pull_names(*copy);
  for (const char* name : {"s0", "s1", "s2", "s3"}) {
    EXPECT_EQ(order_of(*copy, name), order_of(*store, name)) << name;
  }
  push_names(*copy, {"new", "main"});
  pull_names(*store);
  line.go_on(there);
  step("last");
  EXPECT_GT(order_of(*store, "last"), order_of(*copy, "new"));
}

TEST_F(OperatorTest, AfterAPushLaterSnapshotsAreNewerThanThoseOfOthers) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "side", 7);
  there.begin();
  for (const char* name : {"a", "b", "c"}) there.step(name);
  push_names(*copy, {"a", "b", "c"});
  step("s1");
  push_names(*store, {"s1"});
  step("s2");
  EXPECT_GT(order_of(*store, "s2"), order_of(*copy, "c"));
}

TEST_F(OperatorTest, AStoreRecognizesItsOwnPushInARestoredRemote) {
  make(1);
  push_all(*store);
  copy_remote();
  step("s1");
  push_all(*store);
  restore_remote();
  const PullReport report = pull_names(*store);
  const auto main = std::ranges::find(report.versions, "main", &PulledVersion::name);
  EXPECT_TRUE(main->is_older && main->is_ahead);
  expect_contents(*store, contents);
  push_all(*store);
  expect_contents(*clone_to("c"), contents);
}

TEST_F(OperatorTest, AReplicaKeepsWhatARestoredRemoteHasLost) {
  make(1);
  push_all(*store);
  copy_remote();
  const auto copy = clone_to("c");
  step("s1");
  push_all(*store);
  pull_names(*copy);
  restore_remote();
  const PullReport report = pull_names(*copy);
  EXPECT_TRUE(std::ranges::find(report.versions, "main", &PulledVersion::name)->is_older);
  expect_contents(*copy, contents);
  push_all(*store);
  EXPECT_FALSE(pull_names(*copy, {"main"}).versions[0].is_older);
  // The older version needs an option.
  copy_remote();
  step("");
  push_all(*store);
  pull_names(*copy);
  restore_remote();
  pull_taking_over(*copy);
  expect_contents(*copy, {{"main", contents["s1"]}});
}

// Fails at the put of a head, before or after it.
class KilledAtHead final : public ObjectsInFront {
 public:
  KilledAtHead(std::shared_ptr<ObjectStore> objects, bool puts)
      : ObjectsInFront(std::move(objects)), puts_(puts) {}
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    const bool is_head = key.starts_with(kHeadPrefix);
    const bool is_new = (!is_head || puts_) && ObjectsInFront::put_if_absent(key, bytes);
    if (is_head) throw Error(Errc::io, "killed");
    return is_new;
  }

 private:
  Fate fate() override { return Fate::works; }
  const bool puts_;
};

// Whether the interrupted pushes put their heads, the remote is emptied before them instead of
// restored, and there is a commit before each.
class OperatorInterruptedTest : public OperatorTest,
                                public testing::WithParamInterface<std::tuple<bool, bool, bool>> {};

// However often a push is interrupted after a restore: after the next one, of a still older copy,
// this store's own pushes stay its own.
TEST_P(OperatorInterruptedTest, AnInterruptedPushForgetsNoEarlierPush) {
  const auto [puts, is_empty, changes] = GetParam();
  make(1);
  push_all(*store);
  fs::copy(dir.path("r"), dir.path("oldest"), fs::copy_options::recursive);
  step("s1");
  push_all(*store);
  copy_remote();
  step("s2");
  push_all(*store);
  if (is_empty) {
    fs::remove_all(dir.path("r"));
  } else {
    restore_remote();
  }
  for (int i = 0; i < 3; ++i) {
    if (changes) step("");
    const bool has_put = puts && i != 0;
    EXPECT_ERRC(push_names(*store, {"main"}, std::make_shared<KilledAtHead>(objects(), has_put)),
                Errc::io);
  }
  fs::remove_all(dir.path("r"));
  fs::rename(dir.path("oldest"), dir.path("r"));
  push_all(*store);
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
}

INSTANTIATE_TEST_SUITE_P(All, OperatorInterruptedTest,
                         testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

// After a push with take_over, the other store's pull never drops commits silently.
TEST_F(OperatorTest, APullDropsNoCommitsThatAnotherStoreHasDropped) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "main", 7);
  there.go_on(line);
  step("");
  push_all(*store);
  for (int i = 0; i < 3; ++i) there.step("");
  push_names(*copy, {"main"}, nullptr, true);
  const std::string text = store::test::error_text(Errc::io, [&] { pull_names(*store); });
  EXPECT_TRUE(store::test::contains(text, "--take-over")) << text;
  expect_contents(*store, contents);
  pull_taking_over(*store);
  expect_contents(*store, {{"main", there.bytes()}});
}

TEST_F(OperatorTest, ALostRemoteIsFilledAgain) {
  make(3);
  ASSERT_TRUE(replicate(*store, url()));
  fs::remove_all(dir.path("r"));
  step("");
  EXPECT_TRUE(replicate(*store, url()));
  expect_contents(*clone_to("a"), contents);
  // An idle replication does so, too.
  Replicator idle(*store, url(), {1000ms, false});
  ASSERT_TRUE(idle.push_new());
  fs::remove_all(dir.path("r"));
  idle.run([](const ReplicateState&) { return false; });
  expect_contents(*clone_to("b"), contents);
}

TEST_F(OperatorTest, ARemoteThatWasRestoredGetsItsSnapshotsAgain) {
  make(1);
  ASSERT_TRUE(replicate(*store, url()));
  copy_remote();
  step("s1");
  ASSERT_TRUE(replicate(*store, url()));
  restore_remote();
  EXPECT_TRUE(replicate(*store, url()));
  expect_contents(*clone_to("a"), contents);
}

// An operator empties the bucket and copies older objects into it. Meanwhile, a replication fills it.
TEST_F(OperatorTest, ARestoreBesideAReplicationDoesNotHideWhatIsSent) {
  make(2);
  Replicator replicator(*store, url(), {1000ms, false});
  for (const char* name : {"s2", "s3"}) {
    ASSERT_TRUE(replicator.push_new());
    step(name);
  }
  copy_remote();
  const Head before = head();
  fs::remove_all(dir.path("r"));
  step("s4");
  ASSERT_TRUE(replicator.push_new());
  EXPECT_GT(head().number, before.number);
  constexpr auto kOver = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  fs::copy(dir.path("old"), dir.path("r"), kOver);
  expect_contents(*clone_to("a"), contents);
  step("s5");
  EXPECT_TRUE(replicator.push_new());
  expect_contents(*clone_to("b"), contents);
  step("s6");
  EXPECT_TRUE(replicate(*store, url()));  // a new process
  expect_contents(*clone_to("c"), contents);
}

// The copy may also come in parts: heads follow the newest of them, and then all are there.
TEST_F(OperatorTest, ARestoreInPartsDoesNotHideWhatIsSent) {
  make(1);
  Replicator replicator(*store, url(), {1000ms, false});
  std::vector<std::uint64_t> numbers;
  for (int i = 1; i < 5; ++i) {
    ASSERT_TRUE(replicator.push_new());
    numbers.push_back(head().number);
    step("s" + std::to_string(i));
  }
  ASSERT_TRUE(replicator.push_new());
  copy_remote();
  for (const std::string& key : keys("heads/")) {
    if (key != head_key(numbers[1])) fs::remove(dir.path("r/" + key));
  }
  step("later");
  ASSERT_TRUE(replicator.push_new());
  constexpr auto kOver = fs::copy_options::recursive | fs::copy_options::overwrite_existing;
  fs::copy(dir.path("old"), dir.path("r"), kOver);
  expect_contents(*clone_to("a"), contents);
  step("last");
  EXPECT_TRUE(replicator.push_new());
  expect_contents(*clone_to("b"), contents);
  EXPECT_TRUE(replicate(*store, url()));
  expect_contents(*clone_to("c"), contents);
}

TEST_F(OperatorTest, ADrillReplicatesToItsOriginOnlyWithTakeOver) {
  make(1);
  ASSERT_TRUE(replicate(*store, url()));
  const auto drill = clone_to("drill");
  EXPECT_ERRC(replicate(*drill, url()), Errc::busy);
  Line there(*drill, "main", 7);
  there.go_on(line);
  there.step("");
  EXPECT_ERRC(replicate(*drill, url()), Errc::busy);
  step("");
  EXPECT_TRUE(replicate(*store, url()));  // the production store continues
  EXPECT_TRUE(replicate(*drill, url(), true));
  step("");
  EXPECT_ERRC(replicate(*store, url()), Errc::busy);
}

TEST_F(OperatorTest, AStoreRecognizesItselfUnderAnotherNameOrUrl) {
  make(1);
  push_all(*store);
  remove_remote_file(*store, "origin");
  add_remote_file(*store, "other", url(), false);
  step("");
  {
    Session session(*store, "other");
    push(session, {{"main"}, false}, nullptr);
  }
  EXPECT_TRUE(replicate(*store, url() + "/"));
  EXPECT_TRUE(replicate(*store, "file://" + dir.path("./r")));
  EXPECT_EQ(remote_names(*store), std::vector<std::string>{"other"});
  add_remote_file(*store, "third", url(), false);
  step("");
  Session session(*store, "third");
  EXPECT_FALSE(pull(session, {{"main"}}, nullptr).versions[0].was_there);
  push(session, {{"main"}, false}, nullptr);
  expect_contents(*clone_to("c"), contents);
}

TEST_F(OperatorTest, ARemoteMayMove) {
  make(1);
  push_all(*store);
  fs::rename(dir.path("r"), dir.path("moved"));
  set_remote_url(*store, "origin", "file://" + dir.path("moved"));
  EXPECT_TRUE(push_all(*store).versions[0].was_there);
  const auto other = create_store(base::posix_fs(), dir.path("o"), remote_options());
  add_remote_file(*other, "origin", "file://" + dir.path("other"), false);
  EXPECT_ERRC(set_remote_url(*other, "origin", "file://" + dir.path("moved")),
              Errc::invalid_argument);
  EXPECT_ERRC(set_remote_url(*store, "none", url()), Errc::not_found);
  EXPECT_ERRC(set_remote_url(*store, "origin", "ftp://x"), Errc::invalid_argument);
}

TEST_F(OperatorTest, LostObjectsArePushedAgain) {
  make(3);
  push_all(*store);
  const std::function<void(const std::string&)> losses[] = {
      [&](const std::string& key) { fs::remove(dir.path("r") + "/" + key); },
      [&](const std::string& key) { fs::resize_file(dir.path("r") + "/" + key, 40); }};
  for (const char* prefix : {kPiecePrefix, kListPrefix, kSuperblockKey}) {
    for (const auto& lose : losses) {
      if (std::string(prefix) == kSuperblockKey && &lose != &losses[0]) continue;
      SCOPED_TRACE(prefix);
      for (const std::string& key : keys(prefix)) {
        lose(key);
        step("");
        push_all(*store);
        expect_good_remote();
      }
    }
  }
  expect_contents(*clone_to("c"), contents);
}

// Every bit and every length of the superblock.
TEST_F(OperatorTest, ADamagedSuperblockIsPutAgain) {
  make(1);
  push_all(*store);
  const auto sound = objects()->get(kSuperblockKey, 1000);
  std::vector<std::vector<std::byte>> damaged;
  for (std::size_t length = 0; length < sound.size(); length += 3) {
    damaged.emplace_back(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length));
  }
  for (std::size_t bit = 0; bit < 8 * sound.size(); bit += bit < 128 ? 1 : 7) {
    damaged.push_back(sound);
    damaged.back()[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  const std::function<void()> mends[] = {[&] {
                                           Session session(*store, "origin");
                                           push(session, {{}, false}, nullptr);
                                           EXPECT_EQ(session.warnings().size(), 1u);
                                         },
                                         [&] {
                                           const auto report =
                                               repair_remote(*store, url(), nullptr);
                                           EXPECT_EQ(report.found.size(), 1u);
                                         },
                                         [&] { EXPECT_TRUE(replicate(*store, url())); }};
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    objects()->put(kSuperblockKey, damaged[i]);
    try {
      read_superblock(*objects());
      ADD_FAILURE() << "damage " << i;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::corrupted) << "damage " << i;
      EXPECT_THAT(e.what(), testing::HasSubstr("vellum repair"));
    }
    mends[i % 3]();
    ASSERT_EQ(objects()->get(kSuperblockKey, 1000), sound) << "damage " << i;
  }
  // A store that has its versions, and does not know the remote.
  const auto copy = clone_to("c");
  remove_remote(*copy, "origin");
  objects()->put(kSuperblockKey, damaged.back());
  repair_remote(*copy, url(), nullptr);
  EXPECT_EQ(objects()->get(kSuperblockKey, 1000), sound);
}

TEST_F(OperatorTest, ADamagedSuperblockIsNotReplacedByAnotherStores) {
  make(1);
  push_all(*store);
  const auto sound = objects()->get(kSuperblockKey, 1000);
  const auto other = create_store(base::posix_fs(), dir.path("o"), remote_options());
  Line others(*other, "main", 9);
  others.begin();
  others.step("o0", 2, true);
  add_remote_file(*other, "origin", url(), false);
  EXPECT_ERRC(push_all(*other), Errc::invalid_argument);
  EXPECT_ERRC(repair_remote(*other, url(), nullptr), Errc::invalid_argument);
  EXPECT_EQ(objects()->get(kSuperblockKey, 1000), sound);
  auto damaged = sound;
  damaged[40] ^= std::byte{1};
  objects()->put(kSuperblockKey, damaged);
  EXPECT_ERRC(push_all(*other), Errc::invalid_argument);
  EXPECT_ERRC(repair_remote(*other, url(), nullptr), Errc::invalid_argument);
  EXPECT_EQ(objects()->get(kSuperblockKey, 1000), damaged);
}

// With nothing new, it is the head on which the push relies.
TEST_F(OperatorTest, ADamagedNewestHeadIsPutAgainByAPushWithoutNews) {
  make(2);
  push_all(*store);
  const std::string key = keys(kHeadPrefix).front();
  const auto sound = objects()->get(key, 1u << 24);
  std::vector<std::vector<std::byte>> damaged;
  for (std::size_t at = 0; at < sound.size(); at += 11) {
    damaged.emplace_back(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(at));
    damaged.push_back(sound);
    damaged.back()[at] ^= std::byte{4};
  }
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    objects()->put(key, damaged[i]);
    if (i % 2 == 0) {
      Session session(*store, "origin");
      const PushReport report = push(session, {}, nullptr);
      EXPECT_EQ(session.warnings().size(), 1u);
      for (const PushedVersion& version : report.versions) EXPECT_TRUE(version.was_there);
    } else {
      EXPECT_TRUE(replicate(*store, url()));
    }
    ASSERT_EQ(keys(kHeadPrefix).front(), key);
    ASSERT_EQ(objects()->get(key, 1u << 24), sound) << "damage " << i;
  }
  // Without a copy of it.
  objects()->put(key, damaged[1]);
  objects()->remove(kNewestKey);
  fs::remove_all(dir.path("s") + "/remotes/cache");
  EXPECT_ERROR(push_all(*store), corrupted, "vellum repair");
  expect_contents(*store, contents);
}

TEST_F(OperatorTest, AStoreIsNotItsOwnRemote) {
  make(1);
  fs::create_directory_symlink(dir.path("s"), dir.path("link"));
  for (const std::string& path :
       {dir.path("s"), dir.path("s") + "/r", dir.path("link"), dir.path("link") + "/a/b",
        dir.path("s") + "/../s/packs", dir.path(".")}) {
    const std::string place = "file://" + path;
    EXPECT_ERRC(add_remote(*store, "self", place, {}), Errc::invalid_argument);
    EXPECT_ERRC(set_remote_url(*store, "origin", place), Errc::invalid_argument);
    EXPECT_ERRC(know_remote(*store, place), Errc::invalid_argument);
  }
  EXPECT_EQ(remote_names(*store), std::vector<std::string>{"origin"});
  add_remote(*store, "another", "file://" + dir.path("s2"), {});  // a name that only begins like it
}

TEST_F(OperatorTest, AReplicationThatStartsPushesLostObjects) {
  make(2);
  ASSERT_TRUE(replicate(*store, url()));
  fs::remove(dir.path("r") + "/" + keys(kPiecePrefix).front());
  EXPECT_TRUE(replicate(*store, url()));
  expect_good_remote();
}

TEST_F(OperatorTest, ARemoteIsRepairedFromAStore) {
  make(3);
  push_all(*store);
  for (const char* prefix : {kPiecePrefix, kListPrefix}) {
    const std::string key = keys(prefix).back();
    auto bytes = objects()->get(key, 1u << 30);
    bytes[bytes.size() - 9] ^= std::byte{1};
    objects()->put(key, bytes);
  }
  fs::remove(dir.path("r") + "/" + kSuperblockKey);
  const RemoteRepairReport report = repair_remote(*store, url(), nullptr);
  EXPECT_GE(report.found.size(), 1u);
  EXPECT_EQ(report.left.size(), 0u);
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
  // Damage that the store cannot repair is reported.
  store->remove_snapshot("s0");
  for (const std::string& key : keys(kPiecePrefix)) fs::remove(dir.path("r") + "/" + key);
  const RemoteRepairReport rest = repair_remote(*store, url(), nullptr);
  ASSERT_FALSE(rest.left.empty());
  for (const RemoteDamage& damage : rest.left) {
    EXPECT_EQ(damage.versions, std::vector<std::string>{"s0"});
  }
}

// All readers need the table of names that the newest head states. Only the store's cache has it.
TEST_F(OperatorTest, ALostTableOfNamesIsUploadedAgain) {
  make(17);
  push_all(*store);
  step("more");
  push_all(*store);
  const auto lose_table = [&] {
    ASSERT_EQ(keys(kNamesPrefix).size(), 1u);
    objects()->remove(keys(kNamesPrefix).front());
    EXPECT_THROW(clone_to("no"), Error);
  };
  lose_table();
  push_names(*store, {"main"});  // nothing is new
  expect_contents(*clone_to("a"), contents);
  lose_table();
  step("last");
  EXPECT_TRUE(replicate(*store, url()));
  expect_contents(*clone_to("b"), contents);
  lose_table();
  EXPECT_TRUE(repair_remote(*store, url(), nullptr, nullptr).left.empty());
  expect_contents(*clone_to("c"), contents);
}

// Nobody can read the remote any more. The head is in its copy at the remote, and in the cache of
// the store that has pushed last.
TEST_F(OperatorTest, ADamagedNewestHeadIsUploadedAgain) {
  make(3);
  push_all(*store);
  step("more");
  push_all(*store);
  const auto damage = [&](bool cut) {
    const std::string path = dir.path("r") + "/" + keys(kHeadPrefix).front();
    if (cut) return fs::resize_file(path, fs::file_size(path) / 2);
    std::fstream(path, std::ios::in | std::ios::out).seekp(100).put('?');
  };
  const auto expect_repaired = [&](const char* name) {
    EXPECT_ERRC(clone_to("no"), Errc::corrupted);
    EXPECT_TRUE(repair_remote(*store, url(), nullptr).left.empty());
    expect_contents(*clone_to(name), contents);
  };
  damage(true);
  expect_repaired("a");
  objects()->remove(kNewestKey);
  damage(false);
  expect_repaired("b");
  fs::remove_all(dir.path("s/remotes/cache"));
  push_names(*store, {"main"});
  fs::remove_all(dir.path("s/remotes/cache"));
  damage(false);
  const std::string text =
      store::test::error_text(Errc::corrupted, [&] { repair_remote(*store, url(), nullptr); });
  EXPECT_TRUE(store::test::contains(text, "heads/")) << text;
  EXPECT_TRUE(store::test::contains(text, "Remove this object")) << text;
  objects()->remove(keys(kHeadPrefix).front());
  push_all(*store);
  EXPECT_TRUE(repair_remote(*store, url(), nullptr).left.empty());
  expect_contents(*clone_to("c"), contents);
}

TEST_F(OperatorTest, ARefusedNameDoesNotStopTheOthers) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "side", 7);
  there.begin();
  there.step("monday");
  step("monday");
  step("tuesday");
  push_all(*store);
  const std::string text =
      store::test::error_text(Errc::already_exists, [&] { pull_names(*copy); });
  EXPECT_TRUE(store::test::contains(text, "monday")) << text;
  contents["monday"] = there.bytes();
  expect_contents(*copy, contents);
}

TEST_F(OperatorTest, APullRestoresALostHold) {
  make(1);
  push_all(*store);
  clone(base::posix_fs(), url(), dir.path("l"), {{}, true}, nullptr);
  const auto before = keys(kHoldPrefix);
  ASSERT_EQ(before.size(), 1u);
  objects()->remove(before.front());
  pull_names(*open_store(base::posix_fs(), dir.path("l")));
  EXPECT_EQ(keys(kHoldPrefix), before);
}

// Wherever the fetching of packs fails.
TEST_F(OperatorTest, AHoldStaysUntilItIsReleased) {
  make(2);
  push_all(*store);
  for (std::uint64_t nth = 1;; ++nth) {
    const std::string name = dir.path("l" + std::to_string(nth));
    clone(base::posix_fs(), url(), name, {{}, true}, nullptr);
    const auto lazy = open_store(base::posix_fs(), name);
    bool has_failed = false;
    try {
      Session session(*lazy, "origin", std::make_shared<FailingObjects>(objects(), nth, false));
      pull(session, {{}, true}, nullptr);
    } catch (const Error&) {
      has_failed = true;
    }
    EXPECT_EQ(keys(kHoldPrefix).size(), 1u) << nth;
    if (!has_failed || HasFailure()) break;
    ASSERT_LT(nth, 200u);
    for (const std::string& key : keys(kHoldPrefix)) objects()->remove(key);
  }
}

// Calls a function once, when a head has been put.
class StepAfterAHead final : public ObjectsInFront {
 public:
  StepAfterAHead(std::shared_ptr<ObjectStore> objects, std::function<void()> step)
      : ObjectsInFront(std::move(objects)), step_(std::move(step)) {}
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    const bool is_new = ObjectsInFront::put_if_absent(key, bytes);
    if (key.starts_with(kHeadPrefix)) std::exchange(step_, [] {})();
    return is_new;
  }

 private:
  Fate fate() override { return Fate::works; }
  std::function<void()> step_;
};

TEST_F(OperatorTest, ANameIsForgottenAlsoIfAGcDeletesTheHeadThatForgotIt) {
  make(3);
  push_all(*store);
  const auto others = objects();
  StepAfterAHead there(objects(), [&] {
    const Remote remote(*others, store->store_seal());
    forget_names(remote, {"s0"});
    collect_remote(remote, false, nullptr);
  });
  forget_names(Remote(there, store->store_seal()), {"s1"});
  EXPECT_EQ(head().find("s0"), nullptr);
  EXPECT_EQ(head().find("s1"), nullptr);
  EXPECT_NE(head().find("s2"), nullptr);
}

// Each listing has one object more, which is gone when it is read.
class ChangingObjects final : public ObjectsInFront {
 public:
  ChangingObjects(std::shared_ptr<ObjectStore> objects, std::string prefix)
      : ObjectsInFront(std::move(objects)), prefix_(std::move(prefix)) {}
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    auto out = ObjectsInFront::list(prefix, most);
    if (prefix != prefix_) return out;
    const std::uint64_t nth = ++listings_;
    out.insert(out.begin(), {prefix == kHeadPrefix ? head_key(1000000 + nth)
                                                   : hold_key(WriteId{static_cast<std::byte>(nth)}),
                             nth});
    if (out.size() > most) out.resize(most);
    return out;
  }

 private:
  Fate fate() override { return Fate::works; }
  const std::string prefix_;
  std::uint64_t listings_ = 0;
};

TEST_F(OperatorTest, AReaderOfARemoteThatAlwaysChangesEnds) {
  make(1);
  push_all(*store);
  const auto expect_busy = [&](const char* prefix, const auto& read) {
    ChangingObjects there(objects(), prefix);
    const Remote remote(there, store->store_seal());
    const std::string text = store::test::error_text(Errc::busy, [&] { read(remote); });
    EXPECT_NE(text.find(there.url() + ": others have changed the remote"), std::string::npos)
        << text;
  };
  expect_busy(kHoldPrefix, [](const Remote& remote) { read_holds(remote); });
  expect_busy(kHoldPrefix, [](const Remote& remote) { collect_remote(remote, true, nullptr); });
  expect_busy(kHeadPrefix, [](const Remote& remote) { remote.newest_head(); });
}

TEST_F(OperatorTest, GcOfARemoteThatLacksAListSaysSo) {
  make(2);
  push_all(*store);
  fs::remove(dir.path("r") + "/" + keys(kListPrefix).front());
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  EXPECT_ERRC(collect_remote(remote, false, nullptr), Errc::corrupted);
}

TEST_F(OperatorTest, GcRemovesObjectsOfProbes) {
  make(1);
  push_all(*store);
  objects()->put("probe/00-1", {});
  const auto there = objects();
  collect_remote(Remote(*there, store->store_seal()), false, nullptr);
  EXPECT_TRUE(keys("probe/").empty());
}

// `remotes` in an untrusted store.
TEST_F(OperatorTest, ALinkInPlaceOfRemotesIsNotFollowed) {
  make(1);
  fs::remove_all(dir.path("s") + "/remotes");
  fs::create_directory(dir.path("outside"));
  fs::create_directory_symlink(dir.path("outside"), dir.path("s") + "/remotes");
  EXPECT_ERRC(add_remote_file(*store, "origin", url(), false), Errc::corrupted);
  EXPECT_ANY_THROW(push_all(*store));
  EXPECT_TRUE(fs::is_empty(dir.path("outside")));
}

TEST_F(OperatorTest, ALinkInTheCacheOfRemotesIsNotFollowed) {
  make(1);
  fs::create_directory(dir.path("outside"));
  fs::create_directory_symlink(dir.path("outside"), dir.path("s") + "/remotes/cache");
  push_all(*store);
  EXPECT_TRUE(fs::is_empty(dir.path("outside")));
  expect_contents(*clone_to("c"), contents);
}

// A store that only pulls remembers the newest head.
TEST_F(OperatorTest, AReaderNoticesAnOlderOrExchangedRemote) {
  make(1);
  push_all(*store);
  copy_remote();
  const auto copy = clone_to("c");
  step("s1");
  push_all(*store);
  const auto pull_newer = [&](bool only_newer) {
    Session session(*copy, "origin");
    pull(session, {.only_newer = only_newer}, nullptr);
    return session.warnings();
  };
  EXPECT_TRUE(pull_newer(true).empty());
  EXPECT_TRUE(pull_newer(true).empty());  // the same head again
  fs::copy(dir.path("r"), dir.path("newer"), fs::copy_options::recursive);
  restore_remote();
  EXPECT_ERRC(pull_newer(true), Errc::untrusted);
  EXPECT_ERRC(pull_newer(true), Errc::untrusted);  // it has learned nothing from it

  // Another store has gone on from the older copy: as many heads, and then more.
  const auto other = clone_to("other");
  Line there(*other, "side", 7);
  there.begin();
  for (const char* name : {"x", "y"}) {
    there.step(name);
    push_names(*other, {name});
    EXPECT_ERRC(pull_newer(true), Errc::untrusted);
  }
  const auto warnings = pull_newer(false);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("this store has seen head"), std::string::npos) << warnings[0];
  EXPECT_TRUE(pull_newer(true).empty());  // it was said
}

TEST_F(OperatorTest, AWarningOfAnOlderRemoteAcceptsNothing) {
  for (const bool pushes : {false, true}) {
    SCOPED_TRACE(pushes);
    if (!pushes) make(1);
    push_all(*store);
    copy_remote();
    const auto copy = pushes ? store : clone_to("c");
    step(pushes ? "s2" : "s1");
    push_all(*store);
    const auto pull_with = [&](bool only_newer, bool takes_over = false) {
      Session session(*copy, "origin");
      pull(session, {.take_over = takes_over, .only_newer = only_newer}, nullptr);
      return session.warnings().size();
    };
    EXPECT_EQ(pull_with(true), 0u);
    restore_remote();
    for (int i = 0; i < 2; ++i) {
      EXPECT_GT(pull_with(false), 0u);
      EXPECT_ERRC(pull_with(true), Errc::untrusted);
    }
    pull_with(false, true);
    EXPECT_EQ(pull_with(true), 0u);
    step("");
    push_all(*store);
    EXPECT_EQ(pull_with(true), 0u);
  }
}

// A store that pushes does the same, before it notes the loss.
TEST_F(OperatorTest, AStoreThatPushesRefusesAnOlderRemote) {
  for (const bool is_signed : {false, true}) {
    SCOPED_TRACE(is_signed);
    const store::test::SigningProcess process(is_signed);
    if (!is_signed) make(1);
    step(is_signed ? "a1" : "b1");
    push_all(*store);
    copy_remote();
    step(is_signed ? "a2" : "b2");
    push_all(*store);
    restore_remote();
    const auto pull_newer = [&](bool only_newer) {
      Session session(*store, "origin");
      pull(session, {.only_newer = only_newer}, nullptr);
      return session.warnings();
    };
    EXPECT_ERRC(pull_newer(true), Errc::untrusted);
    EXPECT_ERRC(pull_newer(true), Errc::untrusted);
    EXPECT_FALSE(pull_newer(false).empty());
    EXPECT_ERRC(pull_newer(true), Errc::untrusted);  // a warning accepts nothing
    push_all(*store);
    EXPECT_TRUE(pull_newer(true).empty());
  }
}

class ExpectedRoot : public OperatorTest {
 protected:
  ExpectedRoot() {
    make(1);
    step("s1");
    root_ = base::hex(store::read_snapshot(*store, "s1").signature->root);
  }
  void clone_with(const std::string& to, const std::vector<std::string>& versions,
                  const std::string& root, bool lazy = false) const {
    clone(base::posix_fs(), url(), dir.path(to), {versions, lazy, root}, nullptr);
  }

  const store::test::SigningProcess process_;
  std::string root_;
};

TEST_F(ExpectedRoot, HasToBeThereAmongWhatIsPulled) {
  push_all(*store);
  EXPECT_ERRC(clone_with("a", {}, std::string(64, 'a')), Errc::untrusted);
  EXPECT_ERRC(clone_with("b", {"s0"}, root_), Errc::untrusted);
  EXPECT_ERRC(clone_with("c", {}, root_, true), Errc::invalid_argument);
  EXPECT_FALSE(fs::exists(dir.path("c")));
  clone_with("d", {}, root_);
  clone_with("e", {"s1"}, root_);
  const auto copy = StoreDirectory::open(base::posix_fs(), dir.path("e"));
  expect_contents(*copy, {{"s1", contents["s1"]}});
  Session session(*copy, "origin");
  EXPECT_NO_THROW(pull(session, {.versions = {"s1"}, .expect_root = root_}, nullptr));
  EXPECT_ERRC(pull(session, {.dry_run = true, .expect_root = root_}, nullptr),
              Errc::invalid_argument);
}

// The remote states the root for another content.
TEST_F(ExpectedRoot, IsThatOfTheContent) {
  step("s2");
  format::SnapshotRef forged = store::read_snapshot(*store, "s2");
  forged.signature->root = store::read_snapshot(*store, "s1").signature->root;
  base::publish_file(store->fs(), store->tmp_directory(), store->snapshots_directory(),
                     std::string("s2") + store::kRefSuffix,
                     encode_snapshot_ref(forged, store->file_seal()), true);
  push_names(*store, {"s2"});
  EXPECT_ERRC(clone_with("a", {}, root_), Errc::untrusted);
  EXPECT_FALSE(fs::exists(dir.path("a")));
}

}  // namespace
}  // namespace vellum::remote::test
