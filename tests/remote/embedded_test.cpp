// Small commits of a replication, which are parts of heads: one put for each. Readers, clones, gc,
// repair and kills.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/expect_error.hpp"
#include "remote/failing_objects.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/repair_remote.hpp"
#include "remote/replicator.hpp"
#include "store/branch/checkpointed_head.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;
namespace files = std::filesystem;

// Counts calls, and notes the keys that are written.
class CountedObjects final : public ObjectStore {
 public:
  explicit CountedObjects(std::shared_ptr<ObjectStore> objects) : objects_(std::move(objects)) {}
  const std::string& url() const noexcept override { return objects_->url(); }
  std::size_t connections() const noexcept override { return objects_->connections(); }
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    ++reads;
    return objects_->get(key, limit);
  }
  std::vector<std::byte> get_range(const std::string& key, ObjectRange range) override {
    ++reads;
    bytes_read += range.length_bytes;
    return objects_->get_range(key, range);
  }
  std::vector<std::byte> get_start(const std::string& key, std::uint64_t most) override {
    ++reads;
    return objects_->get_start(key, most);
  }
  bool has(const std::string& key, std::uint64_t size_bytes) override {
    ++reads;
    return objects_->has(key, size_bytes);
  }
  const ObjectsKey* objects_key() const noexcept override { return objects_->objects_key(); }
  bool put_if_absent(const std::string& key, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    written.push_back(key);
    bytes_written += bytes.size();
    return objects_->put_if_absent(key, bytes);
  }
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(mutex_);
    written.push_back(key);
    bytes_written += bytes.size();
    objects_->put(key, bytes);
  }
  std::vector<ObjectInfo> list(const std::string& prefix, std::size_t most) override {
    ++listings;
    return objects_->list(prefix, most);
  }
  void remove(const std::string& key) override { objects_->remove(key); }
  void forget() {
    reads = listings = bytes_read = bytes_written = 0;
    written.clear();
  }

  std::atomic<std::uint64_t> reads{0}, listings{0}, bytes_read{0}, bytes_written{0};
  std::vector<std::string> written;

 private:
  const std::shared_ptr<ObjectStore> objects_;
  std::mutex mutex_;
};

class EmbeddedTest : public RemoteTest {
 protected:
  Replicator replicator(std::shared_ptr<ObjectStore> objects = nullptr) {
    return Replicator(*store, url(), {1000ms, false}, std::move(objects));
  }
  // A snapshot and the branch; then `commits` commits of a page each, pushed one by one.
  void replicate(Replicator& to, int commits) {
    if (contents.empty()) make(1);
    if (writer_ == nullptr) writer_ = line.step_and_stay();
    push(to);
    for (int i = 0; i < commits; ++i) {
      line.step_with(*writer_);
      push(to);
    }
  }
  void push(Replicator& to) {
    ASSERT_TRUE(to.push_new()) << to.state().failure;
    contents["main"] = line.bytes();
  }
  void step_and_push(Replicator& to) {
    line.step_with(*writer_);
    push(to);
  }
  Head newest() {
    const auto there = objects();
    return Remote(*there, store->store_seal()).newest_head().head;
  }
  std::vector<EmbeddedObject> embedded() { return newest().find("main")->embedded; }
  RemoteGcReport collect() {
    const auto there = objects();
    return collect_remote(Remote(*there, store->store_seal()), false, nullptr);
  }
  std::size_t count(const char* prefix) { return objects()->list(prefix, SIZE_MAX).size(); }
  std::vector<RemoteDamage> damages() {
    const auto there = objects();
    return verify_remote(Remote(*there, store->store_seal()), true, nullptr).damages;
  }
  // One byte of what the head has of the version.
  void damage(const EmbeddedObject& object) {
    const auto there = objects();
    auto bytes = there->get(head_key(object.head), kMaxHeadBytes);
    bytes.at(object.offset_bytes + object.size_bytes / 2) ^= std::byte{1};
    there->put(head_key(object.head), bytes);
  }
  void expect_url_has_it() {
    RemoteOptions options;
    options.cache_directory = "";
    const auto there = open_remote(base::posix_fs(), url(), options);
    store::test::expect_same(*store::test::open_version(*there, "main"), contents["main"]);
  }

  // As the owner of a bucket does.
  void back_up() { files::copy(dir.path("r"), dir.path("backup"), files::copy_options::recursive); }
  void restore() {
    files::remove_all(dir.path("r"));
    files::copy(dir.path("backup"), dir.path("r"), files::copy_options::recursive);
  }
  // Another store with a snapshot of its own, which is not pushed yet.
  std::shared_ptr<StoreDirectory> other_with(const std::string& snapshot) {
    auto other = clone_to("other");
    Line line(*other, "side-of-other", 7);
    line.begin();
    line.step(snapshot, 4);
    contents[snapshot] = line.bytes();
    return other;
  }

  std::unique_ptr<BranchWriter> writer_;
};

TEST_F(EmbeddedTest, ASmallCommitIsOnePutAndOneOrTwoSmallReads) {
  const auto objects = std::make_shared<CountedObjects>(this->objects());
  Replicator replicator = this->replicator(objects);
  replicate(replicator, 2);
  for (int i = 0; i < 10; ++i) {
    objects->forget();
    step_and_push(replicator);
    EXPECT_EQ(objects->written, std::vector<std::string>{head_key(newest().number)});
    // The starts of the head before and, if gc may delete that one later, of the witness.
    const std::uint64_t reads = deletion_round(newest().number) == 0 ? 2 : 1;
    EXPECT_EQ(objects->reads, reads);
    EXPECT_EQ(objects->bytes_read, reads * kHeadStartBytes);
    EXPECT_EQ(objects->listings, 0u);
  }
  EXPECT_GE(embedded().size(), 12u);  // pieces and lists
  expect_contents(*clone_to("a"), contents);
  expect_url_has_it();
  expect_good_remote();
}

TEST_F(EmbeddedTest, ManySmallPiecesAreMerged) {
  Replicator replicator = this->replicator();
  replicate(replicator, 300);
  EXPECT_LE(embedded().size(), 130u);
  expect_contents(*clone_to("a"), contents);
  expect_good_remote();
}

TEST_F(EmbeddedTest, GcGivesThemObjectsBeforeItDeletesHeads) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const std::size_t pieces = count(kPiecePrefix);
  EXPECT_GT(collect().heads_removed, 5u);
  EXPECT_TRUE(embedded().empty());
  EXPECT_EQ(count(kHeadPrefix), 1u);
  EXPECT_GT(count(kPiecePrefix), pieces + 2);
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
  expect_url_has_it();
  step_and_push(replicator);  // the objects that it has seen are those of another generation
  step_and_push(replicator);
  EXPECT_FALSE(embedded().empty());
  expect_contents(*clone_to("b"), contents);
  expect_good_remote();
  collect();
  collect();
  expect_contents(*clone_to("c"), contents);
}

TEST_F(EmbeddedTest, AReaderOfAnOlderHeadGoesOnAfterAGc) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  RemoteOptions options;
  options.cache_directory = "";
  const auto reader = open_remote(base::posix_fs(), url(), options);
  const auto version = store::test::open_version(*reader, "main");
  collect();
  store::test::expect_same(*version, contents["main"]);
}

TEST_F(EmbeddedTest, ALazyCloneKeepsWhatItNeeds) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const Contents then = contents;
  clone(base::posix_fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  writer_.reset();
  step("s1", 60);  // replaces most of the branch
  push(replicator);
  forget_names(Remote(*objects(), store->store_seal()), {"s1"});
  collect();
  collect();
  const auto lazy = open_store(base::posix_fs(), dir.path("lazy"), {}, objects());
  store::test::expect_same(*store::test::open_version(*lazy, "main"), then.at("main"));
  {
    Session session(*lazy, "origin");
    pull(session, {{"main"}, true}, nullptr);
  }
  expect_good_remote();
}

TEST_F(EmbeddedTest, ASnapshotDoesNotReferToThem) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  writer_.reset();
  step("s1", 1);
  push(replicator);
  EXPECT_TRUE(embedded().empty());
  const auto there = objects();
  for (const ObjectInfo& object : there->list(kHeadPrefix, SIZE_MAX)) {
    if (object.key != head_key(newest().number)) there->remove(object.key);
  }
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

// Another branch's content comes and goes independently.
TEST_F(EmbeddedTest, ABranchDoesNotReferToThoseOfAnother) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const store::CheckpointedHead head(*store, "main", nullptr);
  store->create_branch_at("side", head.version(), "");
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  const auto there = objects();
  forget_names(Remote(*there, store->store_seal()), {"main"});
  collect();
  expect_good_remote();
  const auto copy = clone_to("a", {"side"});
  store::test::expect_same(*store::test::open_version(*copy, "side"), contents["main"]);
}

TEST_F(EmbeddedTest, ADamagedOneIsFoundAndMended) {
  Replicator replicator = this->replicator();
  replicate(replicator, 0);
  for (const bool is_list : {false, true}) {
    for (int i = 0; i < 3; ++i) step_and_push(replicator);
    damage(is_list ? embedded().back() : embedded().front());
    const auto found = damages();
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().versions, std::vector<std::string>{"main"});
    if (is_list) {
      EXPECT_ERRC(collect(), Errc::corrupted);
    } else {
      EXPECT_EQ(collect().damaged, std::vector<std::string>{"main"});
    }
    const RemoteRepairReport report = repair_remote(*store, url(), nullptr);
    EXPECT_FALSE(report.found.empty());
    EXPECT_TRUE(report.left.empty());
    expect_contents(*clone_to(is_list ? "a" : "b"), contents);
    expect_good_remote();
  }
  collect();
  expect_good_remote();
}

TEST_F(EmbeddedTest, ALostHeadIsFoundAndItsContentIsSentAgain) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  objects()->remove(head_key(embedded().front().head));
  EXPECT_FALSE(damages().empty());
  EXPECT_TRUE(this->replicator().push_new());  // another process looks at all of it
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

TEST_F(EmbeddedTest, ADamagedNewestHeadIsMendedFromTheStoreOrItsCopy) {
  Replicator replicator = this->replicator();
  replicate(replicator, 3);
  const std::string key = head_key(newest().number);
  const auto there = objects();
  const auto good = there->get(key, kMaxHeadBytes);
  auto bad = good;
  bad[100] ^= std::byte{1};
  there->put(key, bad);
  there->remove(kNewestKey);
  repair_remote(*store, url(), nullptr);
  EXPECT_EQ(there->get(key, kMaxHeadBytes), good);
  expect_good_remote();
  // From another store, which has not seen that head: from the copy.
  push_all(*store);
  clone_to("other");
  line.step_with(*writer_);
  Replicator fresh = this->replicator();
  push(fresh);  // its first push puts the copy
  const std::string newest_key = head_key(newest().number);
  const auto newest_bytes = there->get(newest_key, kMaxHeadBytes);
  ASSERT_FALSE(embedded().empty());
  bad = newest_bytes;
  bad[100] ^= std::byte{1};
  there->put(newest_key, bad);
  repair_remote(*StoreDirectory::open(base::posix_fs(), dir.path("other")), url(), nullptr);
  EXPECT_EQ(there->get(newest_key, kMaxHeadBytes), newest_bytes);
  expect_contents(*clone_to("a"), contents);
}

TEST_F(EmbeddedTest, ATruncatedHeadIsMended) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const auto there = objects();
  const EmbeddedObject lost = embedded().front();
  auto bytes = there->get(head_key(lost.head), kMaxHeadBytes);
  bytes.resize(lost.offset_bytes + 1);
  there->put(head_key(lost.head), bytes);
  EXPECT_FALSE(damages().empty());
  EXPECT_TRUE(this->replicator().push_new());  // another process
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

// After a restore another store has published a head of that number.
TEST_F(EmbeddedTest, AnotherHeadOfTheNumberHasNothingOfIt) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const auto there = objects();
  const EmbeddedObject lost = embedded().front();
  Head foreign;
  foreign.number = lost.head;
  foreign.write_id = random_write_id();
  auto bytes = encode_head(foreign, store->file_seal());
  bytes.resize(there->get(head_key(lost.head), kMaxHeadBytes).size());
  there->put(head_key(lost.head), bytes);
  {
    const Remote remote(*there, store->store_seal());
    for (const PieceName& piece : remote.list(remote.newest_head().head.find("main")->list)) {
      if (hash_start(piece.content.hash) != lost.hash_start) continue;
      EXPECT_ERRC(remote.piece(piece), Errc::not_found);  // not damaged
    }
  }
  EXPECT_TRUE(this->replicator().push_new());  // another process
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

TEST_F(EmbeddedTest, DamageBehindTheNewestHeadIsNoLostHead) {
  Replicator replicator = this->replicator();
  replicate(replicator, 3);
  const auto other = other_with("theirs");
  const auto there = objects();
  const std::string key = head_key(newest().number);
  const auto good = there->get(key, kMaxHeadBytes);
  damage(embedded().back());
  {
    Session session(*store, "origin");
    session.newest_head();
    EXPECT_FALSE(session.has_lost());
  }
  push_names(*other, {"theirs"});
  there->put(key, good);
  // The head after it is repaired from its copy, since it names the right one before it.
  const std::string newest_key = head_key(newest().number);
  ASSERT_NE(newest_key, key);
  const auto newest_bytes = there->get(newest_key, kMaxHeadBytes);
  auto bad = newest_bytes;
  bad[100] ^= std::byte{1};
  there->put(newest_key, bad);
  repair_remote(*store, url(), nullptr);
  EXPECT_EQ(there->get(newest_key, kMaxHeadBytes), newest_bytes);
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

TEST_F(EmbeddedTest, AnOlderCopyOfTheRemoteIsFoundByTheNextCommit) {
  Replicator replicator = this->replicator();
  replicate(replicator, 3);
  back_up();
  step_and_push(replicator);
  step_and_push(replicator);
  restore();
  line.step_with(*writer_);
  push(replicator);
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
  step_and_push(replicator);
  contents["main"] = line.bytes();
  collect();
  expect_good_remote();
  expect_contents(*clone_to("b"), contents);
}

// Not only for the branch that has a new commit.
TEST_F(EmbeddedTest, AfterARestoreAllBranchesAndSnapshotsAreSentAgain) {
  Replicator replicator = this->replicator();
  replicate(replicator, 2);
  Line side(*store, "side", 9);
  side.begin();
  side.step("", 4);
  push(replicator);
  back_up();
  side.step("s-side", 8);
  contents["side"] = contents["s-side"] = side.bytes();
  push(replicator);
  step_and_push(replicator);
  restore();
  line.step_with(*writer_);
  push(replicator);
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

// Before this store has noticed it.
TEST_F(EmbeddedTest, WhatAnotherStorePushesToARestoredRemoteStays) {
  Replicator replicator = this->replicator();
  replicate(replicator, 3);
  const auto other = other_with("theirs");
  back_up();
  for (int i = 0; i < 3; ++i) step_and_push(replicator);
  restore();
  push_names(*other, {"theirs"});
  line.step_with(*writer_);
  push(replicator);
  ASSERT_NE(newest().find("theirs"), nullptr);
  collect();
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

// The other store has taken all numbers of this store's heads, and more.
TEST_F(EmbeddedTest, ARestoredRemoteWithMoreHeadsOfAnotherStoreIsFound) {
  Replicator replicator = this->replicator();
  replicate(replicator, 3);
  const auto other = other_with("theirs");
  back_up();
  writer_.reset();
  step("s1", 60);
  push(replicator);
  writer_ = line.step_and_stay();
  push(replicator);
  restore();
  push_names(*other, {"theirs"});
  Line more(*other, "more", 8);
  more.begin();
  for (int i = 0; i < 5; ++i) {
    more.step("t" + std::to_string(i), 2);
    push_names(*other, {"t" + std::to_string(i)});
  }
  line.step_with(*writer_);
  push(replicator);
  EXPECT_NE(newest().find("theirs"), nullptr);
  expect_good_remote();
  expect_contents(*clone_to("a"), contents);
}

TEST_F(EmbeddedTest, ALookAtTheHeadsFindsNoLossWhereNoneIs) {
  const auto objects = std::make_shared<OutObjects>(this->objects());
  Replicator replicator = this->replicator(objects);
  replicate(replicator, 3);  // from an empty remote
  for (int i = 0; i < 2; ++i) {
    objects->is_out = true;  // after an error the next push looks
    line.step_with(*writer_);
    EXPECT_FALSE(replicator.push_new());
    objects->is_out = false;
    push(replicator);
    const std::uint64_t order = store::read_snapshot(*store, "s0").order;
    EXPECT_TRUE(read_remote_file(*store, "origin").replicated.contains(order));
    step_and_push(replicator);
  }
  expect_good_remote();
}

TEST_F(EmbeddedTest, StatCountsThem) {
  Replicator replicator = this->replicator();
  replicate(replicator, 5);
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  const RemoteSpace before = space_of_remote(remote);
  EXPECT_LT(before.needed_bytes, before.object_bytes);
  std::uint64_t all = 0;
  for (const char* prefix : {kHeadPrefix, kPiecePrefix, kListPrefix}) {
    for (const ObjectInfo& object : there->list(prefix, SIZE_MAX)) all += object.size_bytes;
  }
  EXPECT_EQ(before.object_bytes, all);
  collect();
  const RemoteSpace after = space_of_remote(remote);
  EXPECT_EQ(after.needed_bytes, after.object_bytes);
}

// A remote in which the newest head has a small commit, and the store has another one.
struct Start {
  sim::SimFs fs;
  Contents before, after;

  Start() {
    const auto store = create_store(fs, "/s", remote_options());
    add_remote_file(*store, "replica", "file:///r", false);
    Line line(*store, "main", 11);
    line.begin();
    line.step("s0", 4);
    before["s0"] = after["s0"] = line.bytes();
    Replicator replicator(*store, "file:///r", {1000ms, false},
                          std::make_shared<DirectoryEngine>(fs, "/r"));
    EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
    const auto writer = line.step_and_stay();
    EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
    before["main"] = line.bytes();
    line.step_with(*writer);
    after["main"] = line.bytes();
  }
};

std::shared_ptr<StoreDirectory> cloned(base::Fs& fs) {
  clone(fs, "file:///r", "/clone", {}, nullptr, std::make_shared<DirectoryEngine>(fs, "/r"));
  return StoreDirectory::open(fs, "/clone");
}

// Cuts the power at each call of `work`, and calls `check` with what is left.
void for_each_cut(sim::SimFs& start, const std::function<void(base::Fs&)>& work,
                  const std::function<void(sim::SimFs&)>& check) {
  for (std::uint64_t nth = 1;; ++nth) {
    sim::SimFs fs(start.disk());
    fs.cut_power_at(nth);
    bool was_cut = false;
    try {
      work(fs);
    } catch (const sim::PowerCut&) {
      was_cut = true;
    } catch (const Error&) {
      was_cut = true;  // the cut, rethrown from a worker thread
    }
    sim::SimFs left(fs.disk());
    check(left);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "cut at call " << nth;
      return;
    }
    if (was_cut) continue;
    EXPECT_GT(nth, 10u);
    return;
  }
}

TEST(EmbeddedKill, AReplicationLosesNothing) {
  Start start;
  const auto replicate = [](base::Fs& fs) {
    const auto store = StoreDirectory::open(fs, "/s");
    Replicator replicator(*store, "file:///r", {1000ms, false},
                          std::make_shared<DirectoryEngine>(fs, "/r"));
    if (!replicator.push_new()) throw Error(Errc::io, replicator.state().failure);
  };
  for_each_cut(start.fs, replicate, [&](sim::SimFs& left) {
    {
      sim::SimFs other(left.disk());
      expect_contents(*cloned(other), {{"s0", start.before["s0"]}});
    }
    replicate(left);
    expect_contents(*cloned(left), start.after);
  });
}

TEST_F(EmbeddedTest, ASmallPushAsksOnlyForObjectsThatItRefersTo) {
  make(2);
  push_all(*store);
  step("s2", 2);
  const auto counted = std::make_shared<CountedObjects>(objects());
  push_names(*store, {"s2"}, counted);
  EXPECT_EQ(counted->listings, 0u);
  EXPECT_LE(counted->reads, 8u);
  // Some are lost: the push lists all, and fills the remote again.
  const auto there = raw_objects();
  for (const auto& piece : there->list(kPiecePrefix, SIZE_MAX)) there->remove(piece.key);
  step("s3", 2);
  push_names(*store, {"s3"}, counted);
  EXPECT_GT(counted->listings, 0u);
  expect_contents(*clone_to("c", {"s3"}), {{"s3", contents["s3"]}});
  // A longer one counts as lost.
  for (const auto& piece : there->list(kPiecePrefix, SIZE_MAX)) {
    auto bytes = there->get(piece.key, 1u << 20);
    bytes.push_back({});
    there->put(piece.key, bytes);
  }
  step("s4", 2);
  push_names(*store, {"s4"}, objects());
  expect_contents(*clone_to("d", {"s4"}), {{"s4", contents["s4"]}});
}

// bench/remote/costs.py counts the same at a real server: 100 commits of 16 pages, each pushed.
TEST(SmallCommits, AreSentOnce) {
  constexpr std::uint64_t kPages = 4096, kCommits = 100, kPagesEach = 16;
  const store::test::TempDirectory dir;
  format::Superblock options;
  options.journal_half_bytes = 16u << 20;
  const auto store = create_store(base::posix_fs(), dir.path("s"), options);
  const std::string url = "file://" + dir.path("r");
  const std::shared_ptr<ObjectStore> there = open_object_store(base::posix_fs(), url);
  add_origin(*store, url, there);
  store->create_branch("main", kPages * format::kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  Model model(kPages);
  std::mt19937_64 random(3);
  for (format::PageNumber p = 0; p < kPages; ++p) model.fill_noise(p, random);
  commit(*writer, model, true);
  const auto counted = std::make_shared<CountedObjects>(there);
  Replicator replicator(*store, url, {1000ms, false}, counted);
  ASSERT_TRUE(replicator.push_new());
  counted->forget();
  for (std::uint64_t i = 0; i < kCommits; ++i) {
    for (std::uint64_t k = 0; k < kPagesEach; ++k) model.fill_noise(random() % kPages, random);
    commit(*writer, model, false);
    ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  }
  const double committed = static_cast<double>(kCommits * kPagesEach * format::kPageBytes);
  const double sent = static_cast<double>(counted->bytes_written) / committed;
  EXPECT_LT(sent, 1.15);
  const std::shared_ptr<ObjectStore> opened = opened_remote(*store, there);
  const Remote remote(*opened, store->store_seal());
  const RemoteSpace space = space_of_remote(remote);
  const double garbage =
      1 - static_cast<double>(space.needed_bytes) / static_cast<double>(space.object_bytes);
  EXPECT_LT(garbage, 0.05);
  RecordProperty("sent", std::to_string(sent));
  RecordProperty("garbage", std::to_string(garbage));
  EXPECT_TRUE(verify_remote(remote, true, nullptr).damages.empty());
  clone(base::posix_fs(), url, dir.path("c"), {}, nullptr);
  const auto copy = StoreDirectory::open(base::posix_fs(), dir.path("c"));
  store::test::expect_same(*store::test::open_version(*copy, "main"), model.bytes);
}

TEST(EmbeddedKill, AGcOfTheRemoteLosesNothing) {
  Start start;
  const auto collect = [](base::Fs& fs) {
    DirectoryEngine objects(fs, "/r");
    const auto store = StoreDirectory::open(fs, "/s");
    collect_remote(Remote(objects, store->store_seal()), false, nullptr);
  };
  for_each_cut(start.fs, collect, [&](sim::SimFs& left) {
    {
      sim::SimFs other(left.disk());
      expect_contents(*cloned(other), start.before);
    }
    collect(left);
    expect_contents(*cloned(left), start.before);
  });
}

TEST(EmbeddedKill, ALazyCloneLosesNothing) {
  Start start;
  const auto clone_lazily = [](base::Fs& fs) {
    clone(fs, "file:///r", "/lazy", {{}, true}, nullptr,
          std::make_shared<DirectoryEngine>(fs, "/r"));
  };
  for_each_cut(start.fs, clone_lazily, [&](sim::SimFs& left) {
    {
      DirectoryEngine objects(left, "/r");
      const auto store = StoreDirectory::open(left, "/s");
      collect_remote(Remote(objects, store->store_seal()), false, nullptr);
    }
    if (!left.exists("/lazy")) clone_lazily(left);
    const auto lazy = open_store(left, "/lazy", {}, std::make_shared<DirectoryEngine>(left, "/r"));
    store::test::expect_same(*store::test::open_version(*lazy, "main"), start.before["main"]);
  });
}

}  // namespace
}  // namespace vellum::remote::test
