// The remote of an encrypted store: nothing of its content is there, what is changed or exchanged there
// is refused, and its key slots open it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/whole_file.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/remote_fixture.hpp"
#include "remote/repair_remote.hpp"
#include "store/catalog/key_file.hpp"

namespace vellum::remote::test {
namespace {

namespace files = std::filesystem;

using Bytes = std::vector<std::byte>;

// Nothing else has these bytes. Names are clear in a store, and not at a remote.
constexpr std::string_view kMarker = "PLAINTEXT-MARKER", kMarkedName = "MARKED-BRANCH-NAME";

// Created before the stores of a test, and destroyed after them.
class WithEncryption {
 protected:
  WithEncryption() { are_encrypted() = true; }
  ~WithEncryption() {
    are_encrypted() = is_run_with_encrypted("stores");
    set_key_source(KeySource());
  }
};

Bytes file_bytes(const files::path& path) {
  return base::read_whole(base::posix_fs(), path, UINT32_MAX);
}

void put_file_bytes(const files::path& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

std::vector<files::path> files_below(const std::string& directory) {
  std::vector<files::path> out;
  for (const auto& entry : files::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

bool is_marked(const files::path& path, std::string_view marker) {
  const Bytes bytes = file_bytes(path);
  return !std::ranges::search(bytes, std::as_bytes(std::span(marker))).empty();
}

// The directories of the files that have the marker.
std::set<std::string> marked_below(const std::string& directory,
                                   std::string_view marker = kMarker) {
  std::set<std::string> out;
  for (const auto& file : files_below(directory)) {
    if (is_marked(file, marker)) out.insert(file.parent_path().filename());
  }
  return out;
}

class EncryptedRemoteTest : private WithEncryption, public RemoteTest {
 protected:
  using Fs = base::Fs;
  static Fs& fs() { return base::posix_fs(); }
  RemoteOptions uncached() const {
    RemoteOptions out;
    out.cache_directory = "";
    return out;
  }
  std::string at_remote(const std::string& key) const { return dir.path("r") + "/" + key; }
  files::path newest_head_path() const { return *files::directory_iterator(at_remote("heads")); }
  // Whether a reader gets all content; false: it was refused. Other content is a failure.
  bool is_read() {
    try {
      const auto there = open_remote(fs(), url(), uncached());
      for (const auto& [name, bytes] : contents) {
        store::test::expect_same(*store::test::open_version(*there, name), bytes);
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  }
};

void mark_pages(Model& model, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (format::PageNumber p = 0; p < model.pages(); ++p) {
    std::byte* const at = model.page(p);
    for (std::size_t i = 0; i < format::kPageBytes; i += 64) {
      std::memcpy(at + i, kMarker.data(), kMarker.size());
      const std::uint64_t noise = random();
      std::memcpy(at + i + kMarker.size(), &noise, sizeof noise);
    }
    model.touched.insert(p);
  }
}

// A branch and snapshots with marked names, messages and pages, without compression.
void push_marked(StoreDirectory& store, const std::string& remote_url) {
  add_remote_file(store, "origin", remote_url, false);
  const std::string branch(kMarkedName);
  Model model(64);
  store.create_branch(branch, model.bytes.size(), 0);
  const auto writer = BranchWriter::open(store, branch);
  for (std::uint64_t i = 0; i < 3; ++i) {
    mark_pages(model, i);
    commit(*writer, model, true);
    writer->publish_snapshot(branch + std::to_string(i), std::string(kMarker));
    push_all(store);
  }
  record_set(store, branch, {{0, 64}});
}

format::Superblock uncompressed() {
  format::Superblock out = remote_options();
  out.compression = base::Compression::none;
  return out;
}

TEST_F(EncryptedRemoteTest, NoObjectAndNoCacheHasPlainContent) {
  const auto plain = StoreDirectory::create(fs(), dir.path("plain"), uncompressed());
  push_marked(*plain, "file://" + dir.path("q"));
  // Heads may compress their names.
  EXPECT_THAT(marked_below(dir.path("q")), testing::Contains("pieces"));
  const auto marked = create_store(fs(), dir.path("m"), uncompressed());
  push_marked(*marked, url());
  EXPECT_THAT(marked_below(dir.path("r")), testing::IsEmpty());
  EXPECT_THAT(marked_below(dir.path("r"), kMarkedName), testing::IsEmpty());
  EXPECT_THAT(marked_below(dir.path("m")), testing::IsEmpty());

  RemoteOptions options;
  options.cache_directory = dir.path("cache");
  const auto there = open_remote(fs(), url(), options);
  const auto version = store::test::open_version(*there, std::string(kMarkedName));
  Bytes page(format::kPageBytes);
  version->read(5, 1, page.data());
  EXPECT_EQ(std::memcmp(page.data(), kMarker.data(), kMarker.size()), 0);
  clone(fs(), url(), dir.path("lazy"), {{}, true}, nullptr);
  clone(fs(), url(), dir.path("copy"), {}, nullptr);
  EXPECT_THAT(marked_below(dir.path("cache"), kMarkedName), testing::IsEmpty());
  for (const char* directory : {"cache", "lazy", "copy"}) {
    EXPECT_FALSE(files_below(dir.path(directory)).empty());
    EXPECT_THAT(marked_below(dir.path(directory)), testing::IsEmpty()) << directory;
  }
}

// A forger repairs what needs no key: lengths, checksums, and hashes in names.
void repair_checksum(Bytes& bytes, const format::Uuid& store_id) {
  bytes.resize(bytes.size() - 8);
  format::append_checksum(bytes, format::checksum_seed(store_id));
}

TEST_F(EncryptedRemoteTest, AForgedHeadIsRefused) {
  make(2);
  push_all(*store);
  const files::path head = newest_head_path();
  const Bytes good = file_bytes(head);
  files::remove(at_remote(kNewestKey));
  ASSERT_TRUE(is_read());
  for (std::size_t at = format::kWholeFileHeaderBytes; at + 8 < good.size(); at += 7) {
    Bytes forged = good;
    forged[at] ^= std::byte{1};
    repair_checksum(forged, store->superblock().store_id);
    put_file_bytes(head, forged);
    EXPECT_FALSE(is_read()) << at;
  }
  // A plain one, as of a plain store with this id.
  Head plain;
  ASSERT_EQ(decode_head(good, store->file_seal(), plain), nullptr);
  put_file_bytes(head, encode_head(plain, store->superblock().store_id));
  EXPECT_ERRC(pull_names(*store), Errc::corrupted);
  EXPECT_FALSE(is_read());
  put_file_bytes(head, good);
  EXPECT_TRUE(is_read());
}

// The copy of the newest head is a hint, also if a forger has made its checksum right.
TEST_F(EncryptedRemoteTest, AForgedCopyOfTheHeadIsNotUsed) {
  make(2);
  push_all(*store);
  const files::path path = at_remote(kNewestKey);
  const auto head_bytes = static_cast<std::size_t>(files::file_size(newest_head_path()));
  const Bytes good = file_bytes(path);
  for (std::size_t at = kHeadStartBytes; at + 8 < head_bytes; at += 11) {
    Bytes head(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(head_bytes));
    head[at] ^= std::byte{1};
    repair_checksum(head, store->superblock().store_id);
    put_file_bytes(path, head);
    EXPECT_TRUE(is_read()) << at;
  }
}

TEST_F(EncryptedRemoteTest, EachFlippedObjectIsRefusedOrNotNeeded) {
  make(3);
  push_all(*store);
  const files::path hints = at_remote("newest");
  for (const files::path& path : files_below(dir.path("r"))) {
    const Bytes good = file_bytes(path);
    for (const std::size_t at :
         {std::size_t{0}, good.size() / 3, good.size() / 2, good.size() - 9, good.size() - 1}) {
      Bytes bad = good;
      bad[at] ^= std::byte{4};
      put_file_bytes(path, bad);
      const bool read = is_read();
      const auto there = objects();
      bool found = false;
      try {
        found = !verify_remote(Remote(*there, unlock_remote(*there).seal), true, nullptr)
                     .damages.empty();
      } catch (const Error&) {
        found = true;
      }
      EXPECT_TRUE(found || path.parent_path() == hints || path == newest_head_path()) << path;
      EXPECT_TRUE(!read || found || path.parent_path() == hints || path == newest_head_path())
          << path << " " << at;
    }
    put_file_bytes(path, good);
  }
  EXPECT_TRUE(is_read());
  expect_good_remote();
}

TEST_F(EncryptedRemoteTest, EachCutObjectIsNamedOrNotNeeded) {
  make(3);
  push_all(*store);
  const files::path hints = at_remote("newest");
  for (const files::path& path : files_below(dir.path("r"))) {
    const Bytes good = file_bytes(path);
    const std::string name = path.filename();
    for (const std::size_t size : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
      put_file_bytes(path, Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
      is_read();  // never other content
      const auto there = objects();
      std::vector<std::string> found;
      try {
        for (const auto& damage :
             verify_remote(Remote(*there, unlock_remote(*there).seal), true, nullptr).damages) {
          found.push_back(damage.object);
        }
      } catch (const Error& e) {
        found.push_back(e.what());
      }
      if (path.parent_path() == hints || path == newest_head_path()) continue;
      EXPECT_THAT(found, testing::Contains(testing::HasSubstr(name))) << path << " cut to " << size;
    }
    put_file_bytes(path, good);
  }
  EXPECT_TRUE(is_read());
  expect_good_remote();
}

TEST_F(EncryptedRemoteTest, ExchangedObjectsAreRefused) {
  make(3);
  push_all(*store);
  step("s3");
  push_all(*store);
  for (const char* kind : {"pieces", "lists", "heads"}) {
    const auto all = files_below(at_remote(kind));
    ASSERT_GE(all.size(), 2u) << kind;
    const Bytes first = file_bytes(all[0]), second = file_bytes(all[1]);
    put_file_bytes(all[0], second);
    put_file_bytes(all[1], first);
    is_read();  // never other content
    const auto there = objects();
    bool found = false;
    try {
      found = !verify_remote(Remote(*there, store->store_seal()), true, nullptr).damages.empty();
    } catch (const Error& e) {
      found = e.code() == Errc::corrupted;
    }
    EXPECT_TRUE(found) << kind;
    put_file_bytes(all[0], first);
    put_file_bytes(all[1], second);
  }
  EXPECT_TRUE(is_read());
}

// The index of a piece is read without the rest: it is authenticated by itself.
TEST_F(EncryptedRemoteTest, AForgedIndexOfAPieceIsRefused) {
  make(1);
  push_all(*store);
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  const Head head = remote.newest_head().head;
  const PieceName piece = remote.list(head.find("s0")->list).front();
  const files::path path = at_remote(piece_key(piece.content));
  Bytes bytes = file_bytes(path);
  Bytes index(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(piece.index_bytes));
  std::vector<PieceRecord> records;
  ASSERT_EQ(decode_piece_index(index, store->file_seal(), records), nullptr);
  for (std::size_t at = format::kWholeFileHeaderBytes; at + 8 < index.size(); ++at) {
    Bytes forged = index;
    forged[at] ^= std::byte{1};
    repair_checksum(forged, store->superblock().store_id);
    ASSERT_NE(decode_piece_index(forged, store->file_seal(), records), nullptr) << at;
  }
}

TEST_F(EncryptedRemoteTest, ARecordThatWasSealedWithAnotherKeyIsRefused) {
  const base::StoreKeys others(base::Secret::random(base::kKeyBytes));
  const Bytes page(format::kPageBytes, std::byte{7});
  const auto problem_of = [&](const base::StoreKeys* keys) {
    format::RecordHeader header;
    header.pack = (3ULL << 32) | 1;
    header.offset_bytes = 64;
    header.raw_bytes = format::kPageBytes;
    header.items = 1;
    Bytes bytes;
    format::append_record(bytes, header, {}, page, {store->checksum_seed(), keys});
    const format::RecordRef ref{header.pack, header.offset_bytes, header.tag()};
    return check_record({header.type, ref, bytes.size(), ref, {}}, bytes, store->record_seal());
  };
  EXPECT_EQ(problem_of(store->keys()), nullptr);
  EXPECT_NE(problem_of(&others), nullptr);
  EXPECT_NE(problem_of(nullptr), nullptr);
}

// What is not noticed yet: an older head, with the objects that it needs.
TEST_F(EncryptedRemoteTest, AnOlderHeadIsNoticedByTheStoreThatPushedAndByNoOther) {
  make(2);
  push_all(*store);
  const Contents before = contents;
  files::copy(dir.path("r"), dir.path("old"), files::copy_options::recursive);
  step("s2");
  push_all(*store);
  files::remove_all(dir.path("r"));
  files::rename(dir.path("old"), dir.path("r"));
  Session session(*store, "origin");
  session.newest_head();
  EXPECT_TRUE(session.has_lost());
  contents = before;
  EXPECT_TRUE(is_read());
}

TEST_F(EncryptedRemoteTest, ACloneHasTheDataKeyAndPushesOn) {
  make(3);
  push_all(*store);
  const auto copy = clone_to("c");
  EXPECT_TRUE(copy->is_encrypted());
  EXPECT_EQ(store::key_fingerprint(*copy), store::key_fingerprint(*store));
  expect_contents(*copy, contents);
  Line there(*copy, "main", 9);
  there.go_on(line);
  there.step("t0");
  push_all(*copy);
  contents["t0"] = contents["main"] = there.bytes();
  pull_names(*store);
  expect_contents(*store, contents);
  expect_good_remote();
}

// What an interrupted push has sent is found by its name.
TEST_F(EncryptedRemoteTest, TheSameRecordsHaveTheSameNames) {
  make(3);
  push_all(*store);
  const auto names = [&](const char* remote) {
    std::set<std::string> out;
    for (const char* kind : {"pieces", "lists"}) {
      for (const auto& file : files_below(dir.path(remote) + "/" + kind)) {
        out.insert(file.filename());
      }
    }
    return out;
  };
  add_remote_file(*store, "second", "file://" + dir.path("r2"), false);
  Session session(*store, "second");
  push(session, {{"s0", "s1", "s2", "main"}, false}, nullptr);
  EXPECT_EQ(names("r"), names("r2"));
}

TEST_F(EncryptedRemoteTest, WithoutTheKeyNothingOpens) {
  make(1);
  push_all(*store);
  KeySource none, wrong = test_key('w');
  for (const KeySource& source : {none, wrong}) {
    set_key_source(source);
    const auto there = objects();
    EXPECT_ERRC(clone_to("c"), Errc::wrong_key);
    EXPECT_ERRC(open_remote(fs(), url(), uncached()), Errc::wrong_key);
    EXPECT_ERRC(unlock_remote(*there), Errc::wrong_key);
    EXPECT_ERRC(newest_head_of(*there), Errc::wrong_key);
    EXPECT_FALSE(files::exists(dir.path("c")));
  }
  set_key_source(test_key());
  EXPECT_TRUE(is_read());
  EXPECT_EQ(newest_head_of(*objects()).head.versions.size(), 2u);
}

TEST_F(EncryptedRemoteTest, APlainRemoteIsRefusedWhereAnEncryptedOneIsWanted) {
  const auto plain = StoreDirectory::create(fs(), dir.path("plain"), remote_options());
  plain->create_branch("main", 4096, 0);
  add_remote_file(*plain, "origin", url(), false);
  push_all(*plain);
  EXPECT_NO_THROW(clone_to("first"));
  KeySource source = test_key();
  source.encrypted_only = true;
  set_key_source(source);
  EXPECT_ERRC(clone_to("c"), Errc::wrong_key);
  EXPECT_ERRC(open_remote(fs(), url(), uncached()), Errc::wrong_key);
  EXPECT_ERRC(newest_head_of(*objects()), Errc::wrong_key);
}

TEST_F(EncryptedRemoteTest, PlainAndEncryptedStoresAreNotMixed) {
  make(1);
  push_all(*store);
  const format::Superblock own = store->superblock();
  format::Superblock plain = own;
  plain.encrypted = false;
  const auto twin = StoreDirectory::create_copy(fs(), dir.path("twin"), plain);
  twin->create_branch("other", 4096, 0);
  EXPECT_ERRC(add_remote(*twin, "origin", url(), {}), Errc::wrong_key);
  add_remote_file(*twin, "origin", url(), false);
  EXPECT_ERRC(push_all(*twin), Errc::corrupted);
  EXPECT_ERRC(pull_names(*twin), Errc::corrupted);
  // Somebody has put a plain superblock there.
  put_file_bytes(at_remote(kSuperblockKey), format::encode_superblock(plain));
  step("s1");
  EXPECT_ERRC(push_all(*store), Errc::wrong_key);
  EXPECT_ERRC(clone_to("c"), Errc::corrupted);
  put_file_bytes(at_remote(kSuperblockKey), format::encode_superblock(own));
  push_all(*store);
  EXPECT_TRUE(is_read());
}

TEST_F(EncryptedRemoteTest, AStoreWithAnotherDataKeyIsRefused) {
  make(1);
  push_all(*store);
  const auto superblock = format::encode_superblock(store->superblock());
  const base::Secret other = base::Secret::random(base::kKeyBytes);
  const format::Uuid& id = store->superblock().store_id;
  const auto slots = store::first_key_slot(test_key(), superblock, id, other);
  const auto forged =
      StoreDirectory::create_encrypted_copy(fs(), dir.path("forged"), store->superblock(), slots,
                                            std::make_shared<const base::StoreKeys>(other));
  add_remote_file(*forged, "origin", url(), false);
  EXPECT_ERRC(pull_names(*forged), Errc::corrupted);
  // Its slots at the remote: a wanted fingerprint shows the exchange, and nothing there opens.
  KeySource source = test_key();
  source.fingerprint = store::key_fingerprint(*store);
  set_key_source(source);
  EXPECT_TRUE(is_read());
  put_file_bytes(at_remote(kKeySlotsKey), slots);
  EXPECT_ERRC(unlock_remote(*objects()), Errc::wrong_key);
  set_key_source(test_key());
  EXPECT_ERRC(clone_to("c"), Errc::corrupted);
}

class RemoteKeySlots : public EncryptedRemoteTest {
 protected:
  bool opens_with(char key) {
    set_key_source(test_key(key));
    bool opens = true;
    try {
      unlock_remote(*objects());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Errc::wrong_key);
      opens = false;
    }
    set_key_source(test_key());
    return opens;
  }
};

TEST_F(RemoteKeySlots, FollowThoseOfTheStoreWithThePush) {
  make(1);
  push_all(*store);
  EXPECT_TRUE(opens_with('k'));
  store::add_key_slot(*store, test_key('n'), "new");
  EXPECT_FALSE(opens_with('n'));
  push_all(*store);
  EXPECT_TRUE(opens_with('n'));
  store::remove_key_slot(*store, 1);
  push_all(*store);
  EXPECT_FALSE(opens_with('k'));
  set_key_source(test_key('n'));
  EXPECT_TRUE(is_read());
}

TEST_F(RemoteKeySlots, ACloneWithOlderSlotsDoesNotBringBackARemovedOne) {
  make(1);
  store::add_key_slot(*store, test_key('n'), "new");
  push_all(*store);
  const auto copy = clone_to("c");
  store::remove_key_slot(*store, 2);
  push_all(*store);
  EXPECT_FALSE(opens_with('n'));
  Line there(*copy, "main", 9);
  there.go_on(line);
  there.step("t0");
  push_all(*copy);
  EXPECT_FALSE(opens_with('n'));
  store::add_key_slot(*copy, test_key('c'), "of the clone");
  there.step("t1");
  push_all(*copy);
  EXPECT_TRUE(opens_with('c'));
}

// The store may be lost with all that it knows: what opens it now opens the remote.
TEST_F(RemoteKeySlots, ThePushToARemoteThatWasAddedAgainSendsThem) {
  make(1);
  push_all(*store);
  remove_remote_file(*store, "origin");
  store::add_key_slot(*store, test_key('n'), "new");
  store::remove_key_slot(*store, 1);
  add_remote_file(*store, "origin", url(), false);
  push_all(*store);
  EXPECT_TRUE(opens_with('n'));
  EXPECT_FALSE(opens_with('k'));
}

TEST_F(RemoteKeySlots, LostOrDamagedOnesAreRepairedFromAStore) {
  make(1);
  push_all(*store);
  const Bytes whole = file_bytes(at_remote(kKeySlotsKey));
  for (const bool is_lost : {true, false}) {
    files::remove(at_remote(kKeySlotsKey));
    if (!is_lost) put_file_bytes(at_remote(kKeySlotsKey), Bytes(whole.begin(), whole.end() - 9));
    EXPECT_ERRC(unlock_remote(*objects()), Errc::corrupted);
    const RemoteRepairReport report = repair_remote(*store, url(), nullptr);
    ASSERT_EQ(report.found.size(), 1u);
    EXPECT_EQ(report.found.front().object, kKeySlotsKey);
    EXPECT_TRUE(opens_with('k'));
  }
  EXPECT_TRUE(repair_remote(*store, url(), nullptr).found.empty());
  EXPECT_TRUE(is_read());
}

// Nobody would notice until the machine is lost.
TEST_F(RemoteKeySlots, APushSendsLostOnesAgain) {
  make(1);
  push_all(*store);
  files::remove(at_remote(kKeySlotsKey));
  step("t9");
  push_all(*store);
  EXPECT_TRUE(opens_with('k'));
  put_file_bytes(at_remote(kKeySlotsKey), Bytes(200));
  push_all(*store);  // nothing else is new
  EXPECT_TRUE(opens_with('k'));
}

// A program that replicates for months lists the remote once.
TEST_F(RemoteKeySlots, FollowWithoutAListing) {
  make(1);
  SeenObjects seen;
  const auto push_again = [&] {
    Session session(*store, "origin");
    push(session, {{"main"}}, nullptr, {.seen_objects = &seen});
  };
  push_again();
  store::add_key_slot(*store, test_key('n'), "new");
  store::remove_key_slot(*store, 1);
  step("t9");
  push_again();
  EXPECT_TRUE(opens_with('n'));
  EXPECT_FALSE(opens_with('k'));
}

// The remote is restored from an older copy, which has a slot that was removed since.
TEST_F(RemoteKeySlots, ARestoredRemoteGetsTodaysOnes) {
  make(1);
  store::add_key_slot(*store, test_key('n'), "new");
  push_all(*store);
  const std::string older = dir.path("older");
  files::copy(at_remote(""), older, files::copy_options::recursive);
  store::remove_key_slot(*store, 1);
  step("t9");
  push_all(*store);
  files::remove_all(at_remote(""));
  files::copy(older, at_remote(""), files::copy_options::recursive);
  EXPECT_TRUE(opens_with('k'));
  push_all(*store);
  EXPECT_FALSE(opens_with('k'));
  set_remote_url(*store, "origin", "file://" + older);
  push_all(*store);
  files::remove_all(at_remote(""));
  files::copy(older, at_remote(""), files::copy_options::recursive);
  EXPECT_FALSE(opens_with('k'));
}

// Another store's first push ended between slots and superblock.
TEST_F(RemoteKeySlots, AnotherStoresLeftoverIsReplaced) {
  make(1);
  files::create_directories(files::path(at_remote(kKeySlotsKey)).parent_path());
  const auto other = create_store(fs(), dir.path("other"), remote_options());
  put_file_bytes(at_remote(kKeySlotsKey), key_slots_here(*other));
  push_all(*store);
  EXPECT_TRUE(opens_with('k'));
  EXPECT_TRUE(is_read());
}

}  // namespace
}  // namespace vellum::remote::test
