// Continuous replication of a store's commits: with concurrent writers, outages and kills.
#include <gtest/gtest.h>

#include <thread>

#include "base/expect_error.hpp"
#include "remote/failing_objects.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/replicator.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "store/check/check.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;

class ReplicatorTest : public RemoteTest {
 protected:
  Replicator replicator(std::shared_ptr<ObjectStore> objects = nullptr) {
    return Replicator(*store, url(), {1000ms, false}, std::move(objects));
  }
  void expect_clone(const std::string& name) { expect_contents(*clone_to(name), contents); }
};

TEST_F(ReplicatorTest, EachCheckPushesNewVersions) {
  make(2);
  Replicator replicator = this->replicator();
  EXPECT_TRUE(replicator.push_new());
  expect_clone("a");
  EXPECT_TRUE(replicator.push_new());
  EXPECT_EQ(replicator.state().pushes, 1u);  // there was no new version
  step("s2");
  const auto writer =
      line.step_and_stay();  // a commit that is only in the journal of an open writer
  contents["main"] = line.bytes();
  EXPECT_TRUE(replicator.push_new());
  EXPECT_EQ(replicator.state().pushes, 2u);
  expect_clone("b");
  expect_good_remote();
}

TEST_F(ReplicatorTest, APushOfAnOpenWriterSendsOnlyWhatIsNew) {
  make(1);
  Replicator replicator = this->replicator();
  auto writer = line.step_and_stay();
  EXPECT_TRUE(replicator.push_new());
  std::vector<std::uint64_t> sent;
  for (int i = 0; i < 25; ++i) {
    const std::uint64_t before = replicator.state().bytes_uploaded;
    line.step_with(*writer);
    EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
    sent.push_back(replicator.state().bytes_uploaded - before);
  }
  EXPECT_EQ(store::stat_store(*store).branches, 1u);  // the staging branch does not count
  EXPECT_LT(sent.back(), 3 * sent.front());  // with all commits of the journal: 12 times as many
  contents["main"] = line.bytes();
  expect_clone("a");
  // The packs that the pushes have written are the store's only as long as they are needed.
  store::collect_garbage(*store, false, nullptr);
  line.step_with(*writer);
  contents["main"] = line.bytes();
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  expect_clone("b");
  writer.reset();
  step("s1");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  expect_clone("c");
  expect_good_remote();
  store::test::expect_no_damage(*store);
}

TEST_F(ReplicatorTest, TheRemotesRetentionIsItsOwn) {
  make(3);
  Replicator replicator = this->replicator();
  EXPECT_TRUE(replicator.push_new());
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  forget_names(remote, {"s0"});
  store->remove_snapshot("s1");
  step("s3");
  EXPECT_TRUE(this->replicator().push_new());  // also a new replicator
  const Head head = remote.newest_head().head;
  EXPECT_EQ(head.find("s0"), nullptr);
  EXPECT_NE(head.find("s1"), nullptr);
  EXPECT_NE(head.find("s3"), nullptr);
}

TEST_F(ReplicatorTest, RulesForgetOnlySnapshotsThatThisStoreHasSentOfItsOwnBranches) {
  make(2);
  push_all(*store);
  const auto copy = clone_to("c");
  Line there(*copy, "side", 7);
  there.begin();
  there.step("other");
  push_names(*copy, {"side", "other"});
  pull_names(*store);
  step("s2");
  std::vector<std::string> offered;
  const RetentionFn forgets = [&](const SnapshotsThere& there) -> std::vector<std::string> {
    const Head& snapshots = there.own;
    offered.clear();
    for (const RemoteVersion& version : snapshots.versions) offered.push_back(version.ref.name);
    if (snapshots.find("s0") == nullptr) return {};
    return {"s0"};
  };
  Replicator replicator(*store, url(), {1000ms, true}, nullptr, forgets);
  // The copy's branch is its own: with take_over, this store would become its writer.
  store->remove_branch("side");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  EXPECT_EQ(offered, (std::vector<std::string>{"s0", "s1", "s2"}));
  EXPECT_EQ(replicator.state().forgotten, 1u);
  const auto objects = this->objects();
  const Head head = Remote(*objects, store->store_seal()).newest_head().head;
  EXPECT_EQ(head.find("s0"), nullptr);
  EXPECT_NE(head.find("other"), nullptr);
  // It is not sent again.
  step("s3");
  EXPECT_TRUE(replicator.push_new());
  EXPECT_EQ(offered, (std::vector<std::string>{"s1", "s2", "s3"}));
}

// Another process takes them of a branch that is open, from a copy of the branch.
TEST_F(ReplicatorTest, RulesForgetSnapshotsOfAnOpenBranch) {
  make(1);
  std::vector<std::string> offered;
  const RetentionFn forgets = [&](const SnapshotsThere& there) -> std::vector<std::string> {
    offered.clear();
    for (const RemoteVersion& version : there.own.versions) offered.push_back(version.ref.name);
    return {};
  };
  Replicator replicator(*store, url(), {1000ms, false}, nullptr, forgets);
  const auto writer = line.step_and_stay();
  store::snapshot_live_branch(*store, "main", store::claim_name(*store, "open"), "");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  EXPECT_EQ(offered, (std::vector<std::string>{"open", "s0"}));
  store->remove_snapshot("open");  // the remote's retention is its own
  line.step_with(*writer);
  store::snapshot_live_branch(*store, "main", store::claim_name(*store, "open-2"), "");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  EXPECT_EQ(offered, (std::vector<std::string>{"open", "open-2", "s0"}));
}

// Two stores that share a remote may give their snapshots the same order.
TEST_F(ReplicatorTest, RulesForgetNoSnapshotThatMayBeAnotherStores) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  const format::SnapshotRef s0 = store::read_snapshot(*copy, "s0");
  copy->create_snapshot("theirs", "main", s0.version, "");
  copy->create_snapshot("nightly", "main", s0.version, "");
  push_names(*copy, {"theirs", "nightly"});
  store->create_snapshot("ours", "main", s0.version, "");
  store->create_snapshot("nightly", "main", s0.version, "");
  ASSERT_EQ(store::read_snapshot(*store, "ours").order,
            store::read_snapshot(*copy, "theirs").order);
  const RetentionFn all = [](const SnapshotsThere& snapshots) {
    std::vector<std::string> out;
    for (const Head& head : {snapshots.own, snapshots.orphaned}) {
      for (const RemoteVersion& version : head.versions) out.push_back(version.ref.name);
    }
    return out;
  };
  Replicator replicator(*store, url(), {1000ms, true}, nullptr, all);
  EXPECT_FALSE(replicator.push_new()) << "the remote has another 'nightly'";
  replicator.push_new();
  const auto objects = this->objects();
  const Head head = Remote(*objects, store->store_seal()).newest_head().head;
  EXPECT_EQ(head.find("ours"), nullptr);
  EXPECT_NE(head.find("theirs"), nullptr);
  EXPECT_NE(head.find("nightly"), nullptr);
}

TEST_F(ReplicatorTest, AnOutageIsReportedAndPasses) {
  make(1);
  auto objects = std::make_shared<OutObjects>(this->objects());
  Replicator replicator = this->replicator(objects);
  EXPECT_TRUE(replicator.push_new());
  objects->is_out = true;
  step("s1");
  EXPECT_FALSE(replicator.push_new());
  EXPECT_NE(replicator.state().failure, "");
  step("s2");
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(replicator.push_new());
  EXPECT_GE(replicator.state().behind, 5ms);
  objects->is_out = false;
  EXPECT_TRUE(replicator.push_new());
  EXPECT_EQ(replicator.state().behind, 0ms);
  expect_clone("a");
}

TEST_F(ReplicatorTest, OnlyASnapshotThatTheRemoteRefusesStaysBehind) {
  make(1);
  EXPECT_TRUE(replicator().push_new());
  store->remove_snapshot("s0");
  step("s0");
  step("s1");
  Replicator replicator = this->replicator();
  EXPECT_FALSE(replicator.push_new());
  EXPECT_TRUE(store::test::contains(replicator.state().failure, "s0"))
      << replicator.state().failure;
  const auto copy = clone_to("a");
  expect_contents(*copy, {{"s1", contents["s1"]}, {"main", contents["main"]}});
}

TEST_F(ReplicatorTest, ABranchThatAnotherStoreHasPushedEndsIt) {
  make(1);
  EXPECT_TRUE(replicator().push_new());
  const auto copy = clone_to("a");
  Line there(*copy, "main", 77);
  there.go_on(line);
  there.step("");
  push_names(*copy, {"main"});
  step("");
  Replicator replicator = this->replicator();
  EXPECT_ERRC(replicator.push_new(), Errc::busy);
}

// A clone has a complete commit, no older than the interval allows.
TEST_F(ReplicatorTest, WithAWriterACloneIsACompletedCommit) {
  make(1);
  std::atomic<bool> stops{false};
  std::thread replicating([&] {
    Replicator(*store, url(), {20ms, false}).run([&](const ReplicateState&) { return !stops; });
  });
  std::map<std::uint64_t, std::vector<std::byte>> commits;  // by sequence
  const auto note = [&] {
    commits[store->read_branch("main").journal.head_sequence()] = line.bytes();
  };
  note();
  for (int i = 0; i < 60; ++i) {
    step(i % 20 == 19 ? "t" + std::to_string(i) : "", 3, i % 3 == 0);
    note();
    if (i % 20 != 10) continue;
    std::this_thread::sleep_for(40ms);
    const std::string name = "c" + std::to_string(i);
    if (!objects()->list(kHeadPrefix, 1).empty()) {
      const auto copy = clone_to(name, {"main"});
      const auto sequence = copy->read_branch("main").journal.head_sequence();
      ASSERT_TRUE(commits.contains(sequence)) << sequence;
      store::test::expect_same(*store::test::open_version(*copy, "main"), commits.at(sequence));
    }
  }
  stops = true;
  replicating.join();
  expect_clone("all");
  expect_good_remote();
}

// Killed at each call: the remote has the state before or after, and the next run continues.
TEST(ReplicatorKill, AKillAtAnyCallLosesNothing) {
  sim::SimFs start;
  Contents contents;
  {
    const auto store = create_store(start, "/s", remote_options());
    add_remote_file(*store, "replica", "file:///r", false);
    Line line(*store, "main", 11);
    line.begin();
    line.step("s0", 4);
    contents["s0"] = line.bytes();
    Replicator(*store, "file:///r", {1000ms, false}).push_new();
    line.step("s1", 4);
    contents["s1"] = line.bytes();
    line.step("", 2, false);
    contents["main"] = line.bytes();
  }
  const auto replicate = [](base::Fs& fs) {
    const auto store = StoreDirectory::open(fs, "/s");
    Replicator replicator(*store, "file:///r", {1000ms, false},
                          std::make_shared<DirectoryEngine>(fs, "/r"));
    if (!replicator.push_new()) throw Error(Errc::io, replicator.state().failure);
  };
  const auto cloned = [&](base::Fs& fs) {
    clone(fs, "file:///r", "/clone", {}, nullptr, std::make_shared<DirectoryEngine>(fs, "/r"));
    return StoreDirectory::open(fs, "/clone");
  };
  for (std::uint64_t nth = 1;; ++nth) {
    sim::SimFs fs(start.disk());
    fs.cut_power_at(nth);
    bool was_killed = false;
    try {
      replicate(fs);
    } catch (const sim::PowerCut&) {
      was_killed = true;
    } catch (const Error&) {
      was_killed = true;  // the cut, rethrown from a worker thread
    }
    sim::SimFs left(fs.disk());
    {
      sim::SimFs other(left.disk());
      expect_contents(*cloned(other), {{"s0", contents["s0"]}});
    }
    replicate(left);
    expect_contents(*cloned(left), contents);
    if (HasFailure()) break;
    if (!was_killed) {
      EXPECT_GT(nth, 20u);
      break;
    }
  }
}

}  // namespace
}  // namespace vellum::remote::test
