// Remotes whose objects are locked: what a thief of the writer's credentials cannot destroy.
#include <gtest/gtest.h>

#include "remote/locked_fixture.hpp"
#include "remote/repair_remote.hpp"

namespace vellum::remote::test {
namespace {

TEST_F(LockedRemoteTest, EachObjectIsLockedWhenItIsPut) {
  make(3);
  push_all(*store, over_s3());
  EXPECT_EQ(locked_less_than(kLock - 60s), std::set<std::string>());
  EXPECT_GT(versions_there(), 8U);
  const UnlockedRemote unlocked = unlock_remote(over_s3());
  const Remote remote(*unlocked.objects, unlocked.seal);
  EXPECT_EQ(lock_note_at(remote), kLock);
  // The copy of the newest head is a hint, which is replaced each minute.
  const auto copies = place.history.all().at(std::string(kObjectPrefix) + kNewestKey);
  EXPECT_EQ(copies.back().locked_until, S3History::Time{});
}

// VELLUM_LONG=1: a thousand times.
TEST_F(LockedRemoteTest, AStolenKeyLosesNothing) {
  make(4);
  push_all(*store, over_s3());
  step("s4", 3);
  step("", 2, false);
  push_names(*store, {"s4", "main"}, over_s3());
  const ServerTime before = moment();
  const bool is_long = std::getenv("VELLUM_LONG") != nullptr;
  const auto stolen = make_s3_engine(place.server.options());
  Thief thief(*stolen, 7);
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    thief.destroy(is_long ? 250 : 40);
    pass(days(3));
    expect_contents(*clone_at("c" + std::to_string(round), before), contents);
  }
  EXPECT_GT(thief.refused(), 20);
  const UnlockedRemote then = remote_at(before);
  EXPECT_TRUE(verify_remote(Remote(*then.objects, then.seal), true, nullptr).damages.empty());
}

// The same without locks: the thief does destroy it, so the test above can fail.
TEST_F(LockedRemoteTest, WithoutLocksAStolenKeyLosesMuch) {
  RemoteFile file = read_remote_file(*store, "origin");
  file.lock.reset();
  write_remote_file(*store, "origin", file, true);
  make(4);
  push_all(*store, over_s3());
  const ServerTime before = moment();
  const auto stolen = make_s3_engine(place.server.options());
  Thief(*stolen, 7).destroy(200);
  EXPECT_THROW(clone_at("c", before), Error);
}

TEST_F(LockedRemoteTest, AnEmptiedRemoteIsReadAsItWas) {
  make(2);
  push_all(*store, over_s3());
  const ServerTime first = moment();
  const Contents first_contents = contents;
  step("s2");
  push_all(*store, over_s3());
  const ServerTime second = moment();
  const auto stolen = make_s3_engine(place.server.options());
  for (const ObjectInfo& object : stolen->list("", SIZE_MAX)) stolen->remove(object.key);
  EXPECT_TRUE(stolen->list("", 1).empty());
  EXPECT_TRUE(keeps_older_states(*stolen));
  EXPECT_ERRC(unlock_remote(over_s3()), Errc::not_found);
  const UnlockedRemote then = remote_at(first);
  EXPECT_EQ(Remote(*then.objects, then.seal).newest_head().head.versions.size(), 3U);
  expect_contents(*clone_at("a", first), first_contents);
  expect_contents(*clone_at("b", second), contents);
  // The clone's origin is today's remote, with its lock.
  const auto copy = StoreDirectory::open(base::posix_fs(), dir.path("b"));
  const RemoteFile origin = read_remote_file(*copy, "origin");
  EXPECT_EQ(origin.url, "s3://bucket/pre/fix");
  EXPECT_EQ(origin.lock, (RemoteLock{kLock, 0}));
}

TEST_F(LockedRemoteTest, LocksAreExtendedOnlyForWhatIsNeeded) {
  make(2);
  push_all(*store, over_s3());
  step("gone");
  push_all(*store, over_s3());
  {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    forget_names(Remote(*unlocked.objects, unlocked.seal), {"gone"});
  }
  Asked asked;
  count(asked);
  step("s2");
  push_names(*store, {"s2", "main"}, over_s3());
  // Looked at a short time ago. Snapshot and branch have one list, which is put twice.
  EXPECT_EQ(asked.put + asked.listed, 0);
  EXPECT_LE(asked.got, 2);
  pass(days(5));
  step("s3");
  push_names(*store, {"s3", "main"}, over_s3());
  EXPECT_GT(asked.listed, 0);
  EXPECT_GT(asked.got, 10);
  EXPECT_EQ(asked.put, 0);  // all have more than half of the duration left
  pass(days(10));
  step("s4");
  push_names(*store, {"s4", "main"}, over_s3());
  EXPECT_GT(asked.put, 0);
  place.server.fault = nullptr;
  EXPECT_EQ(needed_and_locked_less_than(kLock / 2), std::set<std::string>());
  const std::set<std::string> less = locked_less_than(kLock / 2 + 60s);
  EXPECT_FALSE(less.empty());  // old heads, and what only "gone" needs
}

// Each 40 hours, a process that replicates runs for a moment, mostly without anything new: each needed
// object is locked for at least half of the duration at any time.
TEST_F(LockedRemoteTest, AReplicationKeepsTheLocks) {
  RemoteFile file = read_remote_file(*store, "origin");
  file.url = "s3://bucket/pre/fix";
  write_remote_file(*store, "origin", file, true);
  make(2);
  const auto objects = over_s3();
  for (int run = 0; run < 24; ++run) {
    Replicator replicator(*store, "s3://bucket/pre/fix", {}, objects);
    if (run % 5 == 0) step("r" + std::to_string(run), 3);
    ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
    pass(40h);
    EXPECT_EQ(needed_and_locked_less_than(kLock / 2), std::set<std::string>()) << run;
  }
  expect_contents(*clone_at("c", moment()), contents);
}

TEST_F(LockedRemoteTest, GcFreesWhatIsNoLongerLocked) {
  make(3);
  push_all(*store, over_s3());
  {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    forget_names(Remote(*unlocked.objects, unlocked.seal), {"s0", "s1"});
  }
  const std::size_t before = versions_there();
  RemoteGcReport report = collect();
  EXPECT_GT(report.objects_removed, 0U);
  EXPECT_EQ(report.lock, kLock);
  EXPECT_GT(versions_there(), before);  // deletions hide the objects, which are locked
  pass(days(20));
  collect();
  pass(days(11));
  const RemoteGcReport dry = collect(true);
  const std::size_t full = versions_there();
  report = collect();
  EXPECT_GT(report.old_versions_removed, 4U);
  EXPECT_GE(report.old_versions_removed, dry.old_versions_removed);
  EXPECT_GT(report.old_bytes_removed, 0U);
  EXPECT_LT(versions_there(), full);
  collect();  // the deletions that hide nothing any more
  for (const auto& [key, versions] : place.history.all()) {
    const bool is_old = versions.back().put_at < place.history.now() - days(30);
    EXPECT_FALSE(versions.back().is_deletion && is_old) << key;
  }
  contents.erase("s0");
  contents.erase("s1");
  expect_contents(*clone_at("c", moment()), contents);
}

// A needed object under one that a forger has put: gc keeps it, and its lock.
TEST_F(LockedRemoteTest, GcKeepsTheRightVersionUnderAForgedOne) {
  make(2);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  for (const ObjectInfo& object : stolen->list("pieces/", SIZE_MAX)) {
    stolen->put(object.key, std::vector<std::byte>(object.size_bytes));
  }
  for (int i = 0; i < 6; ++i) {
    collect();
    pass(days(10));
  }
  expect_contents(*clone_at("c", moment()), contents);
}

TEST_F(LockedRemoteTest, CredentialsThatMayOnlyPutSuffice) {
  place.history.forbids_deletes = true;
  RemoteFile file = read_remote_file(*store, "origin");
  file.url = "s3://bucket/pre/fix";
  write_remote_file(*store, "origin", file, true);
  make(2);
  const auto objects = over_s3();
  Replicator replicator(*store, "s3://bucket/pre/fix", {}, objects);
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  step("s2", 2);
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  step("s3", 2);
  push_all(*store, over_s3());
  expect_contents(*clone_at("c", moment()), contents);
  // The remote is emptied by its owner, and its newest head cannot be taken back.
  for (const auto& [key, versions] : place.history.all()) {
    for (const auto& version : versions) place.history.lose(key, version.id);
  }
  step("s4", 2);
  ASSERT_TRUE(replicator.push_new() || replicator.push_new()) << replicator.state().failure;
  step("s5", 2);
  ASSERT_TRUE(replicator.push_new()) << replicator.state().failure;
  expect_contents(*clone_at("d", moment()), contents);
}

TEST_F(LockedRemoteTest, AForgedNoteIsPutAgain) {
  make(1);
  push_all(*store, over_s3());
  const UnlockedRemote unlocked = unlock_remote(over_s3());
  const Remote remote(*unlocked.objects, unlocked.seal);
  put_lock_note(remote, 1s);
  pass(days(5));
  step("s1");
  {
    Session session(*store, "origin", over_s3());
    push(session, {{"s1"}}, nullptr);
    EXPECT_EQ(lock_note_at(remote), kLock);
    ASSERT_EQ(session.warnings().size(), 1U);
    EXPECT_NE(session.warnings()[0].find("was changed there"), std::string::npos);
  }
  put_lock_note(remote, kLock * 2);  // another store's, which is longer, stays
  pass(days(5));
  step("s2");
  {
    Session session(*store, "origin", over_s3());
    push(session, {{"s2"}}, nullptr);
    EXPECT_EQ(lock_note_at(remote), kLock * 2);
    ASSERT_EQ(session.warnings().size(), 1U);
    EXPECT_NE(session.warnings()[0].find("lock/duration says 60 days"), std::string::npos);
  }
  unlocked.objects->put(kLockNoteKey, std::vector<std::byte>(3));
  EXPECT_ERRC(collect(), Errc::corrupted);
  pass(days(5));
  step("s3");
  push_names(*store, {"s3"}, over_s3());
  EXPECT_EQ(lock_note_at(remote), kLock);
}

TEST_F(LockedRemoteTest, ADamagedSuperblockIsPutOverAndLocked) {
  make(1);
  push_all(*store, over_s3());
  auto bytes = over_s3()->get(kSuperblockKey, 1000);
  const auto sound = bytes;
  bytes[30] ^= std::byte{1};
  over_s3()->put(kSuperblockKey, bytes);
  repair_remote(*store, url(), nullptr, over_s3());
  EXPECT_EQ(over_s3()->get(kSuperblockKey, 1000), sound);
  EXPECT_TRUE(locked_less_than(kLock / 2).empty());
}

TEST_F(LockedRemoteTest, ADeletedObjectIsReported) {
  make(1);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  stolen->remove(stolen->list("pieces/", 1).front().key);
  pass(days(5));
  Session session(*store, "origin", over_s3());
  session.newest_head();  // the server tells its time
  renew_locks_if_due(session);
  ASSERT_EQ(session.warnings().size(), 1U);
  EXPECT_NE(session.warnings()[0].find("1 objects that versions need were deleted"),
            std::string::npos);
}

TEST_F(LockedRemoteTest, APlaceThatCannotLockIsRefused) {
  make(1);
  EXPECT_ERROR(push_all(*store, raw_objects()), unsupported, "Object Lock");
  EXPECT_ERROR(add_remote(*store, "d", "file://" + dir.path("d"), {.lock = kLock}), unsupported,
               "Object Lock");
  ::setenv("AWS_ACCESS_KEY_ID", "id", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const std::string bucket =
      "s3://bucket/new?endpoint=" + place.server.endpoint() + "&region=test-1";
  place.history.has_lock = false;
  EXPECT_ERROR(add_remote(*store, "b", bucket, {.lock = kLock}), unsupported,
               "Object Lock is not enabled");
  EXPECT_TRUE(place.history.all().empty());
  place.history.has_lock = true;
  EXPECT_ERROR(add_remote(*store, "b", bucket + "&at=2026-11-24T10:30:00Z", {.lock = kLock}),
               invalid_argument, "earlier time");
  EXPECT_TRUE(add_remote(*store, "b", bucket, {.lock = kLock}));
  EXPECT_EQ(read_remote_file(*store, "b").lock->duration, kLock);
  // Another store of the same remote follows it, and a longer lock replaces a shorter one.
  EXPECT_TRUE(add_remote(*store, "c", bucket, {}));
  EXPECT_EQ(read_remote_file(*store, "c").lock->duration, kLock);
  EXPECT_TRUE(add_remote(*store, "e", bucket, {.lock = kLock * 2}));
  EXPECT_TRUE(add_remote(*store, "f", bucket, {.lock = kLock}));
  EXPECT_EQ(read_remote_file(*store, "f").lock->duration, kLock * 2);
  EXPECT_ERROR(set_remote_url(*store, "b", "file://" + dir.path("d")), unsupported, "Object Lock");
  place.history.has_lock = false;
  EXPECT_ERROR(set_remote_url(*store, "b", bucket), unsupported, "Object Lock is not enabled");
  place.history.has_lock = true;
  EXPECT_NE(read_remote_file(*store, "b").lock->renewed_ns, 0);
  set_remote_url(*store, "b", bucket);
  EXPECT_EQ(read_remote_file(*store, "b").lock, (RemoteLock{kLock, 0}));
}

}  // namespace
}  // namespace vellum::remote::test
