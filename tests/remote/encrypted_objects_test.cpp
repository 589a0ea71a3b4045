// The encrypted remote of a plain store: pushes, pulls, clones and openings over it, its key slots,
// and what is refused in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/bytes/hex.hpp"
#include "base/crypto/secret.hpp"
#include "base/expect_error.hpp"
#include "remote/failing_objects.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/objects/object_key.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/repair_remote.hpp"
#include "remote/replicator.hpp"
#include "store/catalog/key_file.hpp"

namespace vellum::remote::test {
namespace {

namespace files = std::filesystem;

// Created before the remote of a test, and destroyed after it.
class WithEncryptedObjects {
 protected:
  WithEncryptedObjects() {
    before_ = std::exchange(are_encrypted(), false);
    are_objects_encrypted() = true;
  }
  ~WithEncryptedObjects() {
    are_encrypted() = before_;
    are_objects_encrypted() = is_run_with_encrypted("objects");
    set_key_source(KeySource());
  }

 private:
  bool before_ = false;
};

class EncryptedObjectsTest : private WithEncryptedObjects, public RemoteTest {
 protected:
  static base::Fs& fs() { return base::posix_fs(); }
  RemoteOptions cached(const std::string& name = "cache") const {
    RemoteOptions out;
    out.cache_directory = dir.path(name);
    return out;
  }
  std::string at_remote(const std::string& key) const { return dir.path("r") + "/" + key; }
  bool opens_with(char key) {
    set_key_source(test_key(key));
    bool opens = true;
    try {
      unlock_remote(raw_objects());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::wrong_key) << e.what();
      opens = false;
    }
    set_key_source(test_key());
    return opens;
  }
  std::map<std::string, std::vector<std::byte>> objects_there() const {
    std::map<std::string, std::vector<std::byte>> out;
    for (const auto& entry : files::recursive_directory_iterator(dir.path("r"))) {
      if (!entry.is_regular_file()) continue;
      out[files::relative(entry.path(), dir.path("r"))] =
          base::read_whole(fs(), entry.path(), UINT32_MAX);
    }
    return out;
  }
  RemoteFile origin() const { return read_remote_file(*store, "origin"); }
  // Well-formed key slots of the store's id, for the secret 'x', which wrap another data key.
  std::vector<std::byte> foreign_slots() const {
    const base::Secret data_key = base::Secret::random(base::kKeyBytes);
    const RemoteSuperblock superblock{store->superblock(), store::key_fingerprint_bytes(data_key)};
    return store::first_key_slot(test_key('x'), encode_remote_superblock(superblock),
                                 superblock.store_id, data_key);
  }
  std::vector<std::byte> slots_there() const {
    return raw_objects()->get(kKeySlotsKey, format::kMaxKeySlotsBytes);
  }
  // As on another machine: 'x' replaces 'k'.
  void exchange_secrets() const {
    RemoteKeySlots slots(raw_objects());
    slots.add(test_key('x'), "");
    slots.remove(1);
  }
  std::shared_ptr<StoreDirectory> lazy_clone() const {
    clone(fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
    return open_store(fs(), dir.path("lazy"), cached());
  }
  void make_plain_remote() {
    files::remove_all(dir.path("r"));
    add_remote_file(*store, "plain", url(), false);
    Session session(*store, "plain");
    push(session, {{"s0"}, false}, nullptr);
  }
};

TEST_F(EncryptedObjectsTest, PushPullAndClonesWorkAsOverAPlainOne) {
  make(3);
  push_all(*store);
  const auto copy = clone_to("c");
  expect_contents(*copy, contents);
  EXPECT_TRUE(read_remote_file(*copy, "origin").objects_key.has_value());
  EXPECT_FALSE(copy->is_encrypted());
  step("s3");
  push_all(*store);
  pull_names(*copy);
  expect_contents(*copy, contents);
  expect_good_remote();
  // Back: the copy pushes, and the store pulls.
  Line other(*copy, "other", 9);
  other.begin();
  other.step("o1");
  push_names(*copy, {"other", "o1"});
  pull_names(*store);
  contents["o1"] = other.bytes();
  expect_contents(*store, contents);
}

TEST_F(EncryptedObjectsTest, AnOpeningByUrlAndALazyCloneReadIt) {
  make(3);
  push_all(*store);
  for (int i = 0; i < 2; ++i) {  // the second time from the cache
    const auto there = open_remote(fs(), url(), cached());
    for (const auto& [name, bytes] : contents) {
      store::test::expect_same(*store::test::open_version(*there, name), bytes);
    }
  }
  EXPECT_FALSE(files::is_empty(dir.path("cache/pieces")));
  clone(fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  {
    const auto lazy = open_store(fs(), dir.path("lazy"), cached("second"));
    expect_contents(*lazy, contents);
  }
  // Opening it needs no server, but the key.
  files::rename(dir.path("r"), dir.path("moved"));
  EXPECT_NO_THROW(open_store(fs(), dir.path("lazy"), cached("second")));
  set_key_source(test_key('x'));
  EXPECT_ERRC(open_store(fs(), dir.path("lazy"), cached("second")), Errc::wrong_key);
}

// A damaged copy in the cache is read from the remote again.
TEST_F(EncryptedObjectsTest, TheCacheIsSealedAndNotTrusted) {
  make(2);
  push_all(*store);
  const auto read_all = [&] {
    const auto there = open_remote(fs(), url(), cached());
    for (const auto& [name, bytes] : contents) {
      store::test::expect_same(*store::test::open_version(*there, name), bytes);
    }
  };
  read_all();
  int copies = 0;
  for (const auto& entry : files::directory_iterator(dir.path("cache/pieces"))) {
    auto bytes = base::read_whole(fs(), entry.path(), UINT32_MAX);
    EXPECT_EQ(std::memcmp(bytes.data(), "VLMSEAL\n", 8), 0) << entry.path();
    bytes[bytes.size() / 2] ^= std::byte{1};
    std::ofstream(entry.path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    ++copies;
  }
  EXPECT_GT(copies, 0);
  read_all();
  EXPECT_FALSE(files::exists(dir.path("cache/lists")));
}

TEST_F(EncryptedObjectsTest, WithoutTheKeyNothingOpensAndNothingIsWritten) {
  make(1);
  push_all(*store);
  step("s1");
  const auto before = objects_there();
  for (const bool has_other : {false, true}) {
    set_key_source(has_other ? test_key('x') : KeySource());
    EXPECT_ERRC(push_all(*store), Errc::wrong_key);
    EXPECT_ERRC(pull_names(*store), Errc::wrong_key);
    EXPECT_ERRC(clone_to("c"), Errc::wrong_key);
    EXPECT_ERRC(open_remote(fs(), url(), cached()), Errc::wrong_key);
    EXPECT_ERRC(newest_head_of(*raw_objects()), Errc::wrong_key);
    EXPECT_ERRC(Replicator(*store, url(), {}), Errc::wrong_key);
  }
  EXPECT_EQ(objects_there(), before);
  EXPECT_FALSE(files::exists(dir.path("c.vellum-clone")));
}

TEST_F(EncryptedObjectsTest, NoObjectHasAPlainName) {
  make(2);
  push_all(*store);
  std::size_t sealed = 0;
  for (const auto& [name, bytes] : objects_there()) {
    if (name.starts_with("store/")) continue;
    EXPECT_EQ(std::memcmp(bytes.data(), "VLMSEAL\n", 8), 0) << name;
    ++sealed;
    for (const ObjectInfo& object : objects()->list("", SIZE_MAX)) {
      if (object.key.starts_with("pieces/")) {
        EXPECT_NE(object.key, name);
      }
    }
  }
  EXPECT_EQ(sealed + 2, objects()->list("", SIZE_MAX).size());
}

TEST_F(EncryptedObjectsTest, APlainRemoteInItsPlaceIsRefused) {
  make(2);
  push_all(*store);
  make_plain_remote();
  const auto before = objects_there();
  step("s2");
  try {
    push_all(*store);
    ADD_FAILURE() << "pushed to a plain remote";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::wrong_key);
    EXPECT_THAT(e.what(), testing::HasSubstr("the remote is not encrypted, and the store knows"));
  }
  EXPECT_ERRC(pull_names(*store), Errc::wrong_key);
  EXPECT_ERRC(Replicator(*store, url(), {}), Errc::wrong_key);
  EXPECT_ERRC(set_remote_url(*store, "origin", url()), Errc::wrong_key);
  EXPECT_EQ(objects_there(), before);
}

TEST_F(EncryptedObjectsTest, AnEncryptedRemoteInThePlaceOfAPlainOneIsRefused) {
  make(1);
  push_all(*store);
  add_remote_file(*store, "plain", url(), false);
  const auto before = objects_there();
  for (const bool pulls : {false, true}) {
    Session session(*store, "plain");
    if (pulls) {
      EXPECT_ERRC(pull(session, {}, nullptr), Errc::wrong_key);
    } else {
      EXPECT_ERRC(push(session, {{"s0"}, false}, nullptr), Errc::wrong_key);
    }
  }
  EXPECT_ERRC(add_remote(*store, "another", url(), {}), Errc::wrong_key);
  EXPECT_EQ(objects_there(), before);
}

TEST_F(EncryptedObjectsTest, ARemoteWithAnotherKeyInItsPlaceIsRefused) {
  make(1);
  push_all(*store);
  files::remove_all(dir.path("r"));
  create_objects_key(raw_objects(), *store, test_key());  // the same secret
  const auto before = objects_there();
  EXPECT_ERRC(push_all(*store), Errc::wrong_key);
  EXPECT_ERRC(pull_names(*store), Errc::wrong_key);
  EXPECT_EQ(objects_there(), before);
  KeySource source = test_key();
  source.fingerprint = base::hex(read_remote_file(*store, "origin").objects_key->fingerprint);
  set_key_source(source);
  EXPECT_ERRC(unlock_remote(raw_objects()), Errc::wrong_key);
}

TEST_F(EncryptedObjectsTest, ADamagedSuperblockIsPutAgainAndKeepsTheKeySlots) {
  make(1);
  push_all(*store);
  exchange_secrets();
  const auto slots = slots_there(), sound = raw_objects()->get(kSuperblockKey, 1000);
  for (const std::size_t at : {0u, 8u, 20u, 60u}) {
    auto damaged = sound;
    damaged[at] ^= std::byte{1};
    raw_objects()->put(kSuperblockKey, damaged);
    set_key_source(test_key('x'));
    push_all(*store);
    EXPECT_EQ(raw_objects()->get(kSuperblockKey, 1000), sound) << at;
    EXPECT_EQ(slots_there(), slots) << at;
  }
}

TEST_F(EncryptedObjectsTest, ALostRemoteIsFilledAgainWithTheSameKey) {
  make(2);
  push_all(*store);
  files::remove_all(dir.path("r"));
  push_all(*store);
  EXPECT_TRUE(opens_with('k'));
  expect_contents(*clone_to("c"), contents);
}

TEST_F(EncryptedObjectsTest, LostOrDamagedKeySlotsArePutAgain) {
  make(1);
  push_all(*store);
  for (const bool is_damaged : {false, true}) {
    if (is_damaged) {
      raw_objects()->put(kKeySlotsKey, std::vector<std::byte>(40));
    } else {
      raw_objects()->remove(kKeySlotsKey);
    }
    EXPECT_ERRC(unlock_remote(raw_objects()), Errc::corrupted);
    step("again" + std::to_string(is_damaged));
    push_all(*store);
    EXPECT_TRUE(opens_with('k'));
  }
  raw_objects()->remove(kKeySlotsKey);
  const auto report = repair_remote(*store, url(), nullptr);
  EXPECT_TRUE(report.left.empty());
  EXPECT_TRUE(opens_with('k'));
}

TEST_F(EncryptedObjectsTest, DamagedAndLostObjectsAreRepairedFromAStore) {
  make(3);
  push_all(*store);
  int damaged = 0;
  for (const auto& [name, bytes] : objects_there()) {
    if (!name.starts_with("pieces/") && !name.starts_with("lists/")) continue;
    auto bad = bytes;
    bad[bad.size() - 1] ^= std::byte{1};
    raw_objects()->put(name, bad);
    if (++damaged % 2 == 0) raw_objects()->remove(name);
  }
  ASSERT_GT(damaged, 3);
  const auto report = repair_remote(*store, url(), nullptr);
  EXPECT_FALSE(report.found.empty());
  EXPECT_TRUE(report.left.empty());
  expect_good_remote();
  expect_contents(*clone_to("c"), contents);
  collect_remote(Remote(*objects(), store->store_seal()), false, nullptr);
  expect_contents(*clone_to("d"), contents);
}

TEST_F(EncryptedObjectsTest, KeySlotsAreChangedAtTheRemote) {
  make(1);
  push_all(*store);
  {
    RemoteKeySlots slots(raw_objects());
    EXPECT_EQ(slots.add(test_key('x'), "another").number, 2u);
    EXPECT_EQ(slots.list().size(), 2u);
  }
  EXPECT_TRUE(opens_with('x'));
  pull_names(*store);
  EXPECT_EQ(store::key_slots(read_remote_slots(*raw_objects(), read_superblock(*raw_objects())))
                .back()
                .label,
            "another");
  RemoteKeySlots(raw_objects()).remove(1);
  EXPECT_FALSE(opens_with('k'));
  EXPECT_ERRC(push_all(*store), Errc::wrong_key);  // although the store's copy would open
  set_key_source(test_key('x'));
  EXPECT_EQ(RemoteKeySlots(raw_objects()).replace(2, test_key('y')).number, 3u);
  EXPECT_FALSE(opens_with('x'));
  set_key_source(test_key('y'));
  push_all(*store);
  EXPECT_ERRC(RemoteKeySlots(raw_objects()).remove(3), Errc::invalid_argument);
}

TEST_F(EncryptedObjectsTest, ASecondStoreJoinsWithASecret) {
  make(1);
  push_all(*store);
  const auto copy = clone_to("c");
  remove_remote_file(*copy, "origin");
  AddRemoteOptions options;
  options.encrypt = true;
  options.key = test_key('z');  // of a new remote, and there is one
  set_key_source(test_key('x'));
  EXPECT_ERRC(add_remote(*copy, "origin", url(), options), Errc::wrong_key);
  set_key_source(test_key());
  add_remote(*copy, "origin", url(), options);
  EXPECT_EQ(read_remote_file(*copy, "origin").objects_key,
            read_remote_file(*store, "origin").objects_key);
  const std::string fresh = "file://" + dir.path("fresh");
  add_remote(*copy, "fresh", fresh, options);
  EXPECT_NE(read_remote_file(*copy, "fresh").objects_key->fingerprint,
            read_remote_file(*copy, "origin").objects_key->fingerprint);
  set_key_source(test_key('z'));
  EXPECT_NO_THROW(unlock_remote(open_object_store(fs(), fresh)));
}

TEST_F(EncryptedObjectsTest, ARemoteThatExistsPlainIsNotEncrypted) {
  make(1);
  make_plain_remote();
  AddRemoteOptions options;
  options.encrypt = true;
  options.key = test_key();
  const auto before = objects_there();
  EXPECT_ERRC(add_remote(*store, "another", url(), options), Errc::wrong_key);
  files::remove(at_remote(kSuperblockKey));
  EXPECT_ERRC(add_remote(*store, "another", url(), options), Errc::wrong_key);
  EXPECT_ERRC(add_remote(*store, "origin", url(), options), Errc::already_exists);
  EXPECT_EQ(objects_there().size() + 1, before.size());
}

// What the encrypted remote could not read would stay in clear.
TEST_F(EncryptedObjectsTest, ObjectsOfAFormerRemoteAreNotLeftBesideANewOne) {
  make(2);
  for (const std::string kept : {"pieces", "lists", "heads"}) {
    files::remove_all(dir.path("r"));
    add_remote_file(*store, "plain-" + kept, url(), false);
    Session session(*store, "plain-" + kept);
    push(session, {{"s0"}, false}, nullptr);
    for (const auto& entry : files::directory_iterator(dir.path("r"))) {
      if (entry.path().filename() != kept) files::remove_all(entry.path());
    }
    AddRemoteOptions options;
    options.encrypt = true;
    options.key = test_key();
    try {
      add_remote(*store, "another", url(), options);
      ADD_FAILURE() << kept << " stay";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::wrong_key) << e.what();
      EXPECT_THAT(e.what(), testing::HasSubstr(kept + "/"));
    }
    EXPECT_FALSE(files::exists(at_remote(kSuperblockKey)));
  }
}

TEST_F(EncryptedObjectsTest, ARemoteThatNothingOpensFromItsCreationNamesTheWayOut) {
  raw_objects()->put(kKeySlotsKey, foreign_slots());
  AddRemoteOptions options;
  options.encrypt = true;
  options.key = test_key();
  try {
    add_remote(*store, "another", url(), options);
    ADD_FAILURE() << "opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::wrong_key);
    EXPECT_THAT(e.what(), testing::HasSubstr("remove store/vellum.store and store/vellum.keys"));
  }
  files::remove_all(at_remote("store"));
  add_remote(*store, "another", url(), options);
  EXPECT_TRUE(opens_with('k'));
  make(1);
  Session session(*store, "another");
  push(session, {{"s0"}, false}, nullptr);
  raw_objects()->put(kKeySlotsKey, foreign_slots());
  try {
    add_remote(*store, "third", url(), options);
    ADD_FAILURE() << "opened";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::Not(testing::HasSubstr("remove"))) << "it has versions";
  }
}

// Who can write the bucket can put such slots there. The copy opens the remote once that has its own
// again.
TEST_F(EncryptedObjectsTest, KeySlotsThatDoNotOpenReplaceNoCopy) {
  make(1);
  push_all(*store);
  const auto good = slots_there();
  const auto lazy = lazy_clone();  // the key is in use
  raw_objects()->put(kKeySlotsKey, foreign_slots());
  EXPECT_ERRC(pull_names(*lazy), Errc::wrong_key);
  EXPECT_EQ(read_remote_file(*lazy, "origin").objects_key->slots, good);
  EXPECT_ERRC(push_all(*store), Errc::wrong_key);
  EXPECT_EQ(origin().objects_key->slots, good);
  expect_contents(*open_store(fs(), dir.path("lazy"), cached("second")), contents);
  raw_objects()->put(kKeySlotsKey, good);
  EXPECT_NO_THROW(pull_names(*lazy));
  exchange_secrets();
  EXPECT_ERRC(pull_names(*lazy), Errc::wrong_key);  // a secret that was removed
  set_key_source(test_key('x'));
  EXPECT_NO_THROW(pull_names(*lazy));
  EXPECT_EQ(read_remote_file(*lazy, "origin").objects_key->slots, slots_there());
}

// A descriptor is read once: slots that were changed since cannot be tried.
TEST_F(EncryptedObjectsTest, ALazyCloneThatADescriptorHasOpenedIsPulled) {
  make(1);
  push_all(*store);
  KeySource people;
  people.passphrase_file = dir.path("passphrase");
  std::ofstream(people.passphrase_file) << "correct horse\n";
  RemoteKeySlots(raw_objects()).add(people, "");
  const auto before = slots_there();
  clone(fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  RemoteKeySlots(raw_objects()).add(test_key('x'), "");
  std::FILE* const file = std::fopen(people.passphrase_file.c_str(), "r");
  KeySource source;
  source.passphrase_fd = ::fileno(file);
  set_key_source(source);
  {
    const auto lazy = open_store(fs(), dir.path("lazy"), cached());
    EXPECT_NO_THROW(pull_names(*lazy));
    EXPECT_EQ(read_remote_file(*lazy, "origin").objects_key->slots, before);
  }
  std::fclose(file);
}

TEST_F(EncryptedObjectsTest, ForeignKeySlotsAreReplacedByARepair) {
  make(1);
  push_all(*store);
  raw_objects()->put(kKeySlotsKey, foreign_slots());
  try {
    push_all(*store);
    ADD_FAILURE() << "pushed";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::wrong_key);
    EXPECT_THAT(e.what(), testing::HasSubstr("`vellum repair " + url()));
  }
  set_key_source(test_key('z'));
  const auto before = objects_there();
  EXPECT_ERRC(repair_remote(*store, url(), nullptr), Errc::wrong_key);
  EXPECT_EQ(objects_there(), before);
  set_key_source(test_key());
  auto report = repair_remote(*store, url(), nullptr);
  ASSERT_EQ(report.found.size(), 1u);
  EXPECT_EQ(report.found[0].object, kKeySlotsKey);
  EXPECT_THAT(report.warnings, testing::ElementsAre(testing::HasSubstr("did not open")));
  EXPECT_TRUE(opens_with('k'));
  push_all(*store);
  // Those that open are not replaced, though the store does not know them.
  RemoteKeySlots(raw_objects()).add(test_key('x'), "");
  report = repair_remote(*store, url(), nullptr);
  EXPECT_TRUE(report.found.empty());
  EXPECT_TRUE(report.warnings.empty());
  EXPECT_TRUE(opens_with('x'));
  EXPECT_EQ(origin().objects_key->slots, slots_there());
}

TEST_F(EncryptedObjectsTest, ALostSuperblockTakesNoKeySlotsWithIt) {
  make(1);
  push_all(*store);
  exchange_secrets();
  raw_objects()->remove(kSuperblockKey);
  set_key_source(test_key('x'));
  push_all(*store);
  EXPECT_TRUE(opens_with('x'));
  EXPECT_FALSE(opens_with('k'));
  // Another creator's leftover is replaced.
  raw_objects()->remove(kSuperblockKey);
  raw_objects()->put(kKeySlotsKey, foreign_slots());
  set_key_source(test_key('x'));
  push_all(*store);
  EXPECT_TRUE(opens_with('x'));
  EXPECT_EQ(slots_there(), origin().objects_key->slots);
}

TEST_F(EncryptedObjectsTest, ALostRemoteIsFilledAgainWithTodaysKeySlots) {
  make(1);
  Replicator replicator(*store, url(), {});
  EXPECT_TRUE(replicator.push_new());
  {
    RemoteKeySlots slots(raw_objects());
    slots.add(test_key('x'), "");
    slots.remove(1);
    Session(*store, "origin", slots.opened()).note_key_slots(slots.bytes());
  }
  files::remove_all(dir.path("r"));
  step("s1");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  EXPECT_FALSE(
      opens_with('k'));  // first: the key is in use, and slots that have opened it would do
  EXPECT_TRUE(opens_with('x'));
  EXPECT_THAT(replicator.take_warnings(), testing::ElementsAre(testing::HasSubstr("is empty")));
  EXPECT_TRUE(replicator.take_warnings().empty());
}

// As by `vellum key rotate URL` on another machine, while a replication goes on.
TEST_F(EncryptedObjectsTest, AReplicationFollowsKeySlotsThatWereChangedAtTheRemote) {
  make(1);
  auto out = std::make_shared<OutObjects>(raw_objects());
  Replicator replicator(*store, url(), {}, out);
  EXPECT_TRUE(replicator.push_new());
  const auto check = [&](const std::string& snapshot) {  // a failure makes the check due
    step(snapshot);
    out->is_out = true;
    EXPECT_FALSE(replicator.push_new());
    out->is_out = false;
    EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  };
  const auto first = slots_there();
  RemoteKeySlots(raw_objects()).add(test_key('y'), "");
  EXPECT_EQ(origin().objects_key->slots, first);
  check("s1");
  EXPECT_EQ(origin().objects_key->slots, slots_there()) << "its secret opens them";
  EXPECT_TRUE(replicator.take_warnings().empty());
  const auto second = slots_there();
  exchange_secrets();
  check("s2");
  EXPECT_EQ(origin().objects_key->slots, second) << "nobody has shown that they open";
  EXPECT_THAT(replicator.take_warnings(),
              testing::ElementsAre(testing::HasSubstr("start it again")));
  check("s3");
  EXPECT_TRUE(replicator.take_warnings().empty()) << "it was said once";
  files::remove_all(dir.path("r"));
  step("s4");
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  EXPECT_FALSE(opens_with('k')) << "a secret that was removed";
  EXPECT_TRUE(opens_with('x'));
}

// A person takes time.
TEST_F(EncryptedObjectsTest, AChangeOfKeySlotsBeginsOnceItsSecretIsKnown) {
  make(1);
  push_all(*store);
  RemoteKeySlots slots(raw_objects());
  EXPECT_EQ(slots.add(test_key('x'), "").number, 2u);
  std::function<void()> meanwhile = [&] { RemoteKeySlots(raw_objects()).remove(2); };
  KeySource asks;
  asks.prompt = [&](const std::string&, char* to, std::size_t) {
    meanwhile();
    std::memcpy(to, "new secret", 10);
    return std::size_t{10};
  };
  EXPECT_EQ(slots.add(asks, "").number, 3u);
  EXPECT_FALSE(opens_with('x')) << "was removed meanwhile";
  meanwhile = [&] { RemoteKeySlots(raw_objects()).add(test_key('y'), ""); };
  EXPECT_EQ(slots.replace(3, asks).number, 5u);
  EXPECT_TRUE(opens_with('y')) << "was added meanwhile";
  // Another remote came there.
  meanwhile = [&] {
    files::remove_all(dir.path("r"));
    create_objects_key(raw_objects(), *store, test_key());
  };
  EXPECT_ERRC(slots.add(asks, ""), Errc::wrong_key);
  EXPECT_EQ(RemoteKeySlots(raw_objects()).list().size(), 1u);
}

// Another program's put follows each put of key slots.
class SlotsPutTwice final : public ObjectsInFront {
 public:
  SlotsPutTwice(const std::shared_ptr<ObjectStore>& objects, std::vector<std::byte> others)
      : ObjectsInFront(objects), objects_(objects), others_(std::move(others)) {}
  void put(const std::string& key, std::span<const std::byte> bytes) override {
    ObjectsInFront::put(key, bytes);
    if (key == kKeySlotsKey) objects_->put(key, others_);
  }

 private:
  Fate fate() override { return Fate::works; }
  const std::shared_ptr<ObjectStore> objects_;
  const std::vector<std::byte> others_;
};

TEST_F(EncryptedObjectsTest, OfTwoChangesOfKeySlotsAtOnceTheLostOneIsAnError) {
  make(1);
  push_all(*store);
  RemoteKeySlots slots(std::make_shared<SlotsPutTwice>(raw_objects(), slots_there()));
  EXPECT_ERRC(slots.add(test_key('x'), ""), Errc::busy);
  EXPECT_EQ(RemoteKeySlots(raw_objects()).list().size(), 1u);
}

TEST_F(EncryptedObjectsTest, AGivenSecretIsForNoPlainRemote) {
  make(1);
  push_all(*store);
  const std::string typo = "file://" + dir.path("typo");
  add_remote_file(*store, "plain", "file://" + dir.path("p"), false);
  KeySource source = test_key();
  source.encrypted_only = source.or_encrypted_remote = true;
  set_key_source(source);
  EXPECT_ERRC(Session(*store, "plain"), Errc::wrong_key);
  EXPECT_ERRC(Replicator(*store, "file://" + dir.path("p"), {}), Errc::wrong_key);
  EXPECT_ERRC(Replicator(*store, typo, {}), Errc::wrong_key);
  EXPECT_ERRC(repair_remote(*store, typo, nullptr), Errc::wrong_key);
  EXPECT_ERRC(add_remote(*store, "second", typo, {}), Errc::wrong_key);
  EXPECT_ERRC(set_remote_url(*store, "plain", typo), Errc::wrong_key);
  EXPECT_FALSE(files::exists(dir.path("typo")));
  EXPECT_FALSE(files::exists(dir.path("p")));
  EXPECT_NO_THROW(push_all(*store));
  // Who can write the store's directory makes its remote a plain one, beside an encrypted decoy.
  RemoteFile file = origin();
  write_remote_file(*store, "decoy", file, false);
  file.objects_key.reset();
  file.url = typo;
  write_remote_file(*store, "origin", file, true);
  EXPECT_ERRC(push_all(*store), Errc::wrong_key);
  EXPECT_FALSE(files::exists(dir.path("typo")));
  set_key_source(KeySource());
  EXPECT_NO_THROW(push_all(*store)) << "it is plain, and no secret was given";
}

// Somebody has changed the URL, perhaps.
TEST_F(EncryptedObjectsTest, ARefilledRemoteIsReported) {
  make(1);
  push_all(*store);
  {
    Session session(*store, "origin");
    push(session, {{"s0"}, false}, nullptr);
    EXPECT_TRUE(session.warnings().empty());
  }
  RemoteFile file = origin();
  file.url = "file://" + dir.path("another");
  write_remote_file(*store, "origin", file, true);
  Session session(*store, "origin");
  push(session, {{"s0"}, false}, nullptr);
  EXPECT_THAT(session.warnings(), testing::ElementsAre(testing::HasSubstr("is empty")));
  const auto there = open_object_store(fs(), file.url);
  EXPECT_TRUE(read_superblock(*there).objects_key.has_value());
}

// A lost key could not be made again.
TEST_F(EncryptedObjectsTest, AnInterruptedCreationLeavesNothingToOpenOrARemote) {
  for (std::uint64_t nth = 1;; ++nth) {
    files::remove_all(dir.path("r"));
    bool failed = false;
    try {
      create_objects_key(std::make_shared<FailingObjects>(raw_objects(), nth, nth % 2 == 0), *store,
                         test_key());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::io) << e.what();
      failed = true;
    }
    if (!failed) {
      EXPECT_GT(nth, 3u);
      break;
    }
    if (!files::exists(at_remote(kSuperblockKey))) {
      create_objects_key(raw_objects(), *store, test_key('x'));
      EXPECT_TRUE(opens_with('x'));
      EXPECT_FALSE(opens_with('k'));
    } else {
      EXPECT_TRUE(opens_with('k'));
    }
    ASSERT_LT(nth, 100u);
  }
}

TEST_F(EncryptedObjectsTest, AReplicationAsksForTheSecretOnce) {
  make(1);
  Replicator replicator(*store, url(), {});
  EXPECT_TRUE(replicator.push_new());
  step("s1");
  set_key_source(KeySource());
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
  set_key_source(test_key());
  expect_contents(*clone_to("c"), contents);
}

TEST_F(EncryptedObjectsTest, AReplicationBeginsWhileTheServerIsGone) {
  make(1);
  push_all(*store);
  auto out = std::make_shared<OutObjects>(raw_objects());
  out->is_out = true;
  Replicator replicator(*store, url(), {}, out);
  step("s1");
  EXPECT_FALSE(replicator.push_new());
  out->is_out = false;
  EXPECT_TRUE(replicator.push_new()) << replicator.state().failure;
}

TEST_F(EncryptedObjectsTest, WhereOnlyEncryptedStoresAreWantedItIsReadAndNotCloned) {
  make(1);
  push_all(*store);
  KeySource source = test_key();
  source.encrypted_only = true;
  set_key_source(source);
  EXPECT_NO_THROW(open_remote(fs(), url(), cached()));
  EXPECT_FALSE(newest_head_of(*raw_objects()).head.versions.empty());
  EXPECT_ERRC(clone_to("c"), Errc::wrong_key);
  EXPECT_ERRC(open_store(fs(), dir.path("s")), Errc::wrong_key);
  // A secret that was given for one command may be that of the remote.
  source.or_encrypted_remote = true;
  set_key_source(source);
  EXPECT_NO_THROW(open_store_with_remotes(fs(), dir.path("s")));
  EXPECT_ERRC(open_store(fs(), dir.path("s")), Errc::wrong_key);  // it is read and written without
  clone(fs(), url(), dir.path("c"), {}, nullptr);
  clone(fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  EXPECT_NO_THROW(open_store(fs(), dir.path("lazy")));
  KeySource another = test_key('x');
  another.encrypted_only = another.or_encrypted_remote = true;
  set_key_source(another);
  EXPECT_ERRC(open_store(fs(), dir.path("lazy")), Errc::wrong_key);
  set_key_source(source);
  remove_remote_file(*store, "origin");
  EXPECT_ERRC(open_store_with_remotes(fs(), dir.path("s")), Errc::wrong_key);
}

// Flips a bit of each object: all content, or an error; never other content.
TEST_F(EncryptedObjectsTest, EachFlippedObjectIsRefusedOrNotNeeded) {
  make(2);
  push_all(*store);
  int refused = 0;
  for (const auto& [name, good] : objects_there()) {
    auto bad = good;
    bad[bad.size() / 2] ^= std::byte{1};
    raw_objects()->put(name, bad);
    try {
      RemoteOptions uncached;
      uncached.cache_directory = "";
      const auto there = open_remote(fs(), url(), uncached);
      for (const auto& [version, bytes] : contents) {
        store::test::expect_same(*store::test::open_version(*there, version), bytes);
      }
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("file://"));
      ++refused;
    }
    raw_objects()->put(name, good);
  }
  EXPECT_GT(refused, 3);
}

}  // namespace
}  // namespace vellum::remote::test
