// Passes over the locks of a remote in which a thief has put, locked or damaged objects.
#include "remote/locked_fixture.hpp"
#include "remote/objects/lock_note.hpp"

namespace vellum::remote::test {
namespace {

using LockPassTest = LockedRemoteTest;

std::string name_there(const std::string& key) { return kObjectPrefix + key; }

bool has_text(const std::vector<std::string>& warnings, const std::string& text) {
  return std::ranges::any_of(warnings,
                             [&](const auto& w) { return w.find(text) != std::string::npos; });
}

// A lock until the year 3000, and one in governance mode, which cannot be extended, over a piece.
TEST_F(LockPassTest, WhatAThiefLocksEndsNoPass) {
  make(3);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  const auto pieces = stolen->list("pieces/", 9);
  ASSERT_GE(pieces.size(), 2U);
  place.history.change(name_there(pieces[0].key),
                       [](auto& version) { version.until_text = "3000-01-01T00:00:00Z"; });
  pass(1min);
  stolen->put(pieces[1].key, std::vector<std::byte>(pieces[1].size_bytes));
  place.history.change(name_there(pieces[1].key), [&](auto& version) {
    version.mode = "GOVERNANCE";
    version.locked_until = place.history.now() + days(36'500);
  });
  pass(days(13));
  step("s9");
  Session session(*store, "origin", over_s3());
  const PushReport report = push(session, {{"s9", "main"}}, nullptr);
  EXPECT_EQ(report.versions.size(), 2U);
  EXPECT_TRUE(has_text(session.warnings(), " 1 locks could not be looked at or extended"));
  EXPECT_TRUE(has_text(session.warnings(), " 1 objects that are written once got other versions"));
  std::set<std::string> less = needed_and_locked_less_than(kLock / 2);
  less.erase(pieces[0].key);  // until the year 3000
  EXPECT_EQ(less, std::set<std::string>());
  const auto there = place.history.all().at(name_there(pieces[1].key));
  EXPECT_GT(there.front().locked_until, place.history.now() + kLock * 5 / 8);
}

// A hold that is none, and a list that somebody has overwritten: everything counts as needed.
TEST_F(LockPassTest, WhatCannotBeReadEndsNoPass) {
  make(3);
  push_all(*store, over_s3());
  const std::set<std::string> needed = needed_keys_there();
  const auto stolen = make_s3_engine(place.server.options());
  for (const std::string& key :
       {std::string("holds/") + std::string(32, 'a'), stolen->list("lists/", 1).front().key}) {
    stolen->put(key, std::vector<std::byte>(9));
    pass(days(13));
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    const LockRenewal renewal =
        renew_locks(Remote(*unlocked.objects, unlocked.seal), kLock, nullptr);
    EXPECT_EQ(renewal.failures, 1U);
    EXPECT_EQ(renewal.deleted, 0U);
    std::set<std::string> both;
    const std::set<std::string> less = locked_less_than(kLock / 2 + 60s);
    std::ranges::set_intersection(less, needed, std::inserter(both, both.end()));
    EXPECT_EQ(both, std::set<std::string>());
    EXPECT_EQ(std::ranges::count_if(less, [](const auto& k) { return k.starts_with("heads/"); }),
              0);
  }
}

TEST_F(LockPassTest, APassInPartsLooksAtEverything) {
  make(4);
  push_all(*store, over_s3());
  pass(days(13));
  const UnlockedRemote unlocked = unlock_remote(over_s3());
  const Remote remote(*unlocked.objects, unlocked.seal);
  LockPass parts(remote, kLock, std::nullopt);
  int count = 1;
  while (!parts.go_on(remote, LockPass::Clock::time_point::min(), nullptr)) {
    ASSERT_LT(++count, 1000);
  }
  EXPECT_GT(count, 5);
  EXPECT_GT(parts.report().extended, 5U);
  EXPECT_EQ(parts.report().deleted, 0U);
  EXPECT_EQ(needed_and_locked_less_than(kLock - 60s), std::set<std::string>());
  EXPECT_EQ(renew_locks(remote, kLock, nullptr).locked, parts.report().locked);
}

TEST_F(LockPassTest, ALostObjectIsReported) {
  make(2);
  push_all(*store, over_s3());
  const std::string lost =
      name_there(make_s3_engine(place.server.options())->list("pieces/", 1)[0].key);
  const auto there = place.history.all().at(lost);
  for (const auto& version : there) place.history.lose(lost, version.id);
  const UnlockedRemote unlocked = unlock_remote(over_s3());
  const Remote remote(*unlocked.objects, unlocked.seal);
  EXPECT_EQ(renew_locks(remote, kLock, nullptr).deleted, 1U);
}

// More versions than are locked: the right one is found.
TEST_F(LockPassTest, TheRightOneOfManyVersionsIsLocked) {
  make(1);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  const ObjectInfo piece = stolen->list("pieces/", 1).front();
  const std::string there = name_there(piece.key);
  const std::string right = place.history.all().at(there).front().id;
  for (int i = 0; i < 20; ++i) {
    place.history.add(there, std::string(piece.size_bytes, 'x'), place.history.now() - days(1),
                      false);
    pass(1s);
    stolen->put(piece.key, std::vector<std::byte>(piece.size_bytes));
  }
  pass(days(13));
  const UnlockedRemote unlocked = unlock_remote(over_s3());
  renew_locks(Remote(*unlocked.objects, unlocked.seal), kLock, nullptr);
  const auto versions = place.history.all().at(there);
  const auto found = std::ranges::find(versions, right, &S3History::Version::id);
  ASSERT_NE(found, versions.end());
  EXPECT_GT(found->locked_until, place.history.now() + kLock - 60s);
}

TEST_F(LockPassTest, AForgedLongerNoteLocksNothing) {
  make(2);
  push_all(*store, over_s3());
  {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    put_lock_note(Remote(*unlocked.objects, unlocked.seal), kMaxLock);
  }
  const RemoteGcReport report = collect();
  EXPECT_LE(report.lock, kLock + 60s);
  EXPECT_TRUE(has_text(report.warnings, "lock/duration says 36500 days"));
  for (const auto& [key, versions] : place.history.all()) {
    EXPECT_LE(versions.back().locked_until, place.history.now() + kLock + 60s) << key;
  }
  const PullReport copied =
      clone(base::posix_fs(), "s3://bucket/pre/fix", dir.path("c"), {}, nullptr, over_s3());
  EXPECT_EQ(copied.warnings.size(), 1U);
  const auto copy = StoreDirectory::open(base::posix_fs(), dir.path("c"));
  EXPECT_LE(read_remote_file(*copy, "origin").lock->duration, kLock + 60s);
}

TEST_F(LockPassTest, ADamagedNoteEndsNoClone) {
  make(1);
  push_all(*store, over_s3());
  over_s3()->put(kLockNoteKey, std::vector<std::byte>(3));
  EXPECT_ERROR(collect(), corrupted, "remove this object");
  const PullReport report =
      clone(base::posix_fs(), "s3://bucket/pre/fix", dir.path("c"), {}, nullptr, over_s3());
  EXPECT_TRUE(has_text(report.warnings, "remove this object"));
  const auto copy = StoreDirectory::open(base::posix_fs(), dir.path("c"));
  expect_contents(*copy, contents);
  EXPECT_FALSE(read_remote_file(*copy, "origin").lock.has_value());
}

TEST_F(LockPassTest, AClonedTimeBeforeTheLockHasTodaysLock) {
  RemoteFile file = read_remote_file(*store, "origin");
  file.lock.reset();
  write_remote_file(*store, "origin", file, true);
  make(1);
  push_all(*store, over_s3());
  const Contents then = contents;
  const ServerTime before = moment();
  lock(kLock);
  step("s1");
  push_all(*store, over_s3());
  const auto copy = clone_at("c", before);
  expect_contents(*copy, then);
  EXPECT_EQ(read_remote_file(*copy, "origin").lock, (RemoteLock{kLock, 0}));
}

TEST_F(LockPassTest, ANoteWithoutObjectLockIsNamed) {
  make(1);
  push_all(*store, over_s3());
  place.history.has_lock = false;
  EXPECT_ERROR(collect(), unsupported, "lock/duration says that objects are locked");
}

TEST_F(LockPassTest, GcAsksForNoVersionThatTheServerKeeps) {
  make(3);
  push_all(*store, over_s3());
  {
    const UnlockedRemote unlocked = unlock_remote(over_s3());
    forget_names(Remote(*unlocked.objects, unlocked.seal), {"s0", "s1"});
  }
  collect();
  VersionName kept;
  for (const auto& [key, versions] : place.history.all()) {
    const std::string name = key.substr(std::string(kObjectPrefix).size());
    if (name.starts_with("lists/") && versions.back().is_deletion) kept = {name, versions[0].id};
  }
  ASSERT_FALSE(kept.key.empty());
  pass(days(31));
  const auto stolen = make_s3_engine(place.server.options());
  stolen->list("", 1);  // the server tells its time
  stolen->lock_until(kept, place.history.now() + days(90));
  std::atomic<int> single{0};
  place.server.fault = [&](const S3Request& request) {
    if (request.method == "DELETE" && request.query.contains("versionId")) ++single;
    return Fault::none;
  };
  EXPECT_GT(collect().old_versions_removed, 0U);
  EXPECT_EQ(single, 0);
  EXPECT_EQ(place.history.all().at(name_there(kept.key)).front().id, kept.id);
}

// Junk under a needed object goes when its lock is over, and the right version stays.
TEST_F(LockPassTest, GcFreesVersionsOfAnotherSize) {
  make(2);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  const ObjectInfo piece = stolen->list("pieces/", 1).front();
  const std::string there = name_there(piece.key);
  const std::string right = place.history.all().at(there).front().body;
  stolen->put(piece.key, std::vector<std::byte>(piece.size_bytes + 1));
  pass(1s);
  place.history.add(there, right, place.history.now(), true);
  ASSERT_EQ(place.history.all().at(there).size(), 3U);
  for (int i = 0; i < 4; ++i) {
    collect();
    pass(days(10));
  }
  collect();
  const auto left = place.history.all().at(there);
  ASSERT_EQ(left.size(), 2U);
  for (const auto& version : left) EXPECT_EQ(version.body, right);
}

// An object that was found there is locked as in a pass, also when the reply to its PUT was lost.
TEST_F(LockPassTest, AReusedObjectIsLockedForFiveEighths) {
  const auto other = make_s3_engine(place.server.options());
  other->lock_puts({kLock * 9 / 16, {}});
  const std::vector<std::byte> bytes(5, std::byte{7});
  for (const bool is_lost : {false, true}) {
    const std::string key = is_lost ? "pieces/b" : "pieces/a";
    const auto objects = make_s3_engine(place.server.options());
    objects->lock_puts({kLock, {}});
    if (!is_lost) other->put(key, bytes);
    std::atomic<bool> loses = is_lost;
    place.server.answer = [&](const S3Request& request) -> std::optional<S3Server::Answer> {
      if (request.method != "PUT" || !loses.exchange(false)) return place.history.handle(request);
      other->put(key, bytes);  // another was faster, with the same content
      return S3Server::Answer{500, "<Error><Code>InternalError</Code></Error>", ""};
    };
    EXPECT_EQ(objects->put_if_absent(key, bytes), is_lost);
    EXPECT_GE(place.history.all().at(name_there(key)).back().locked_until,
              place.history.now() + kLock * 5 / 8)
        << key;
  }
}

TEST_F(LockPassTest, AWrongClockGivesTheRightLock) {
  for (const std::int64_t ahead : {days(40) / 1s, -(days(40) / 1s)}) {
    place.history.ahead_s = ahead;
    const auto objects = make_s3_engine(place.server.options());
    objects->lock_puts({kLock, {}});
    const std::string key = ahead > 0 ? "heads/a" : "heads/b";
    objects->put(key, std::vector<std::byte>(1));
    const auto until = place.history.all().at(name_there(key)).back().locked_until;
    EXPECT_GT(until, place.history.now() + kLock - 60s) << ahead;
    EXPECT_LT(until, place.history.now() + kLock + 60s) << ahead;
  }
}

// Also where names are sealed, and only the key tells which version is the right one.
TEST_F(LockPassTest, ARepairedObjectIsReadAtATime) {
  make(2);
  push_all(*store, over_s3());
  const auto stolen = make_s3_engine(place.server.options());
  for (const ObjectInfo& piece : stolen->list("pieces/", 99)) {
    const std::string there = name_there(piece.key);
    const std::string right = place.history.all().at(there).front().body;
    place.history.change(there, [](auto& version) {
      version.body.back() = static_cast<char>(~version.body.back());
    });
    pass(1s);
    place.history.add(there, right, place.history.now(), true);
  }
  expect_contents(*clone_at("repaired", moment()), contents);
  for (const ObjectInfo& piece : stolen->list("pieces/", 99)) {
    stolen->put(piece.key, std::vector<std::byte>(piece.size_bytes));
  }
  expect_contents(*clone_at("forged", moment()), contents);
}

}  // namespace
}  // namespace vellum::remote::test
