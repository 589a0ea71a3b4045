// A segment and its files through commits, snapshots, crashes, and under other paths.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <vellum/datastore.hpp>

#include "support/child.hpp"
#include "support/shared.hpp"
#include "support/store_fixture.hpp"
#include "support/working_directory.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class Datastores : public EngineTest {
 protected:
  std::string path(const std::string& name = "ds") const { return directory_ / name; }
  DatastoreOptions options() const {
    DatastoreOptions options;
    options.region.engine = GetParam();
    return options;
  }
  Datastore create(const std::string& at) const {
    Datastore::prepare(at);
    return Datastore::create(at, kCapacity, options());
  }
  Datastore open(const std::string& at) const { return Datastore::open(at, kCapacity, options()); }
  Datastore read(const std::string& at) const { return Datastore::open_read_only(at, options()); }

  // The segment's first word and a file, the same number in both.
  static void set(const Datastore& datastore, const std::string& at, std::uint64_t value) {
    *static_cast<std::uint64_t*>(datastore.segment()) = value;
    fs::create_directories(Datastore::files_directory(at) + "/metadata");
    std::ofstream(Datastore::files_directory(at) + "/metadata/count") << value;
  }
  static std::uint64_t word(const Datastore& datastore) {
    return *static_cast<const std::uint64_t*>(datastore.segment());
  }
  static std::uint64_t metadata(const std::string& at) {
    std::uint64_t value = 0;
    std::ifstream(Datastore::files_directory(at) + "/metadata/count") >> value;
    return value;
  }
  void expect_holds(const std::string& at, std::uint64_t value) const {
    EXPECT_TRUE(Datastore::consistent(at, options())) << at;
    const Datastore datastore = read(at);
    EXPECT_EQ(word(datastore), value) << at;
    EXPECT_EQ(metadata(at), value) << at;
  }

  static constexpr std::uint64_t kCapacity = 1ULL << 30;
  TempDirectory directory_;
};

TEST_P(Datastores, OpeningRestoresTheFilesOfTheLastCommit) {
  {
    Datastore datastore = create(path());
    EXPECT_TRUE(datastore.writable());
    EXPECT_FALSE(Datastore::consistent(path(), options()));  // no commit yet
    set(datastore, path(), 1);
    datastore.commit();
    set(datastore, path(), 2);  // lost, of both
  }
  EXPECT_EQ(metadata(path()), 2u);
  expect_holds(path(), 1);
  Datastore datastore = open(path());
  EXPECT_EQ(word(datastore), 1u);
  set(datastore, path(), 3);
  datastore.commit_async().get();
  datastore.close();
  expect_holds(path(), 3);
}

// The files beside the store would stay plain.
TEST_P(Datastores, EncryptedStoresAreRefused) {
  std::ofstream(directory_ / "key") << std::string(50, 'k');
  StoreOptions encrypted;
  encrypted.encrypt = true;
  encrypted.key.key_file = directory_ / "key";
  set_key_source(encrypted.key);
  fs::create_directories(path());
  {
    Store store = Store::create(path() + "/store", encrypted);
    RegionOptions region;
    region.engine = Engine::sigsegv;
    region.capacity_bytes = 16u << 20;
    store.create_region("other", 1u << 20, region).commit();
  }
  EXPECT_ERRC(Datastore::create(path(), kCapacity, options()), Errc::unsupported);
  Store::open(path() + "/store").create_branch("main", "other");
  EXPECT_ERRC(open(path()), Errc::unsupported);
  EXPECT_ERRC(read(path()), Errc::unsupported);
  EXPECT_ERRC(Datastore::consistent(path(), options()), Errc::unsupported);
  EXPECT_ERRC(Datastore::copy(path(), path("copy"), options()), Errc::unsupported);
  EXPECT_ERRC(Datastore::remove(path()), Errc::unsupported);
  EXPECT_TRUE(Store::open(path() + "/store").contains("main"));

  DatastoreOptions wanted = options();
  wanted.store = encrypted;
  create(path("plain")).commit();
  EXPECT_ERRC(Datastore::create(path("new"), kCapacity, wanted), Errc::unsupported);
  EXPECT_ERRC(Datastore::copy(path("plain"), path("copy"), wanted), Errc::unsupported);
  EXPECT_FALSE(fs::exists(path("new/store")));
  EXPECT_FALSE(fs::exists(path("copy/store")));
  set_key_source(KeySource());
}

TEST_P(Datastores, TheHeadBeforeTheSegmentIsPrivate) {
  create(path()).commit();
  for (int i = 0; i < 2; ++i) {
    const Datastore datastore = i == 0 ? open(path()) : read(path());
    auto* const head = static_cast<std::byte*>(datastore.head());
    EXPECT_EQ(head + Datastore::kHeadBytes, datastore.segment());
    EXPECT_TRUE(all_zero(head, Datastore::kHeadBytes));
    std::memset(head, 1, Datastore::kHeadBytes);  // writable in a read-only datastore, too
  }
}

TEST_P(Datastores, SnapshotsHavePathsAndNames) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.snapshot(path() + "@one");
    set(datastore, path(), 2);
    Datastore::prepare(path("two"));
    datastore.snapshot(path("two"));
    fs::create_directories(path("other"));
    datastore.snapshot(path("other/two"));  // its name in the store is taken
    set(datastore, path(), 3);
    EXPECT_ERRC(datastore.snapshot(path() + "@one"), Errc::already_exists);
    EXPECT_ERRC(datastore.snapshot(path("two")), Errc::already_exists);
    datastore.commit();
    expect_holds(path() + "@one", 1);  // while the live one is open
    expect_holds(path("two"), 2);
    EXPECT_ERRC(read(path()), Errc::busy);
    EXPECT_FALSE(Datastore::consistent(path(), options()));
  }
  expect_holds(path(), 3);
  expect_holds(path("other/two"), 2);
  EXPECT_TRUE(Store::open(path() + "/store").verify({.read_data = true}).damages.empty());
}

TEST_P(Datastores, SnapshotsAreTakenAsynchronously) {
  {
    Datastore datastore = create(path());
    std::vector<std::future<CommitReport>> pending;
    const std::vector<std::string> places = {path() + "@one", path("two"), path("other/two"),
                                             path("third/two")};
    for (std::size_t i = 0; i < places.size(); ++i) {
      set(datastore, path(), i + 1);
      Datastore::prepare(places[i]);
      pending.push_back(datastore.snapshot_async(places[i]));
      set(datastore, path(), 1000);  // not in it
    }
    for (auto& future : pending) EXPECT_GT(future.get().sequence, 0u);
    for (std::size_t i = 0; i < places.size(); ++i) expect_holds(places[i], i + 1);
    EXPECT_ERRC(std::ignore = datastore.snapshot_async(path("two")), Errc::already_exists);
    EXPECT_ERRC(std::ignore = datastore.snapshot_async(path() + "@one"), Errc::already_exists);
  }
  expect_holds(path(), 4);
  EXPECT_TRUE(Store::open(path() + "/store").verify({.read_data = true}).damages.empty());
}

// The link exists before its version, and stays when the process is killed in between.
TEST_P(Datastores, ALinkWithoutItsVersionIsReplaced) {
  Datastore datastore = create(path());
  set(datastore, path(), 1);
  datastore.snapshot(path("two"));
  Store::open(path() + "/store").remove_snapshot("two");
  EXPECT_FALSE(Datastore::consistent(path("two"), options()));
  EXPECT_ERRC(read(path("two")), Errc::not_found);
  Datastore::prepare(path("two"));
  set(datastore, path(), 2);
  datastore.snapshot_async(path("two")).get();
  expect_holds(path("two"), 2);
}

TEST_P(Datastores, VersionsOfOtherProgramsOpen) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.commit();
  }
  Store::open(path() + "/store").create_snapshot("outside", "main");
  set(open(path()), path(), 2);
  expect_holds(path() + "@outside", 1);
  EXPECT_ERRC(read(path() + "@nobody"), Errc::not_found);
  EXPECT_ERRC(read(path("nowhere")), Errc::not_found);
}

TEST_P(Datastores, WritingToASnapshotKeepsItsOrigin) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.snapshot(path("side"));
  }
  {
    Datastore side = open(path("side"));
    EXPECT_EQ(word(side), 1u);
    set(side, path("side"), 7);
    side.commit();
    expect_holds(path(), 1);
  }
  expect_holds(path("side"), 7);
}

TEST_P(Datastores, ADatastoreMovesWithItsSnapshots) {
  fs::create_directories(path("a"));
  {
    Datastore datastore = create(path("a/ds"));
    set(datastore, path("a/ds"), 1);
    datastore.snapshot(path("a/snap"));
  }
  fs::rename(path("a"), path("b"));
  expect_holds(path("b/ds"), 1);
  expect_holds(path("b/snap"), 1);
  fs::remove_all(path("b/ds"));
  expect_error(Errc::not_found, {"b/snap", "b/ds/store"}, [&] { read(path("b/snap")); });
}

TEST_P(Datastores, ADatastoreGrows) {
  Datastore datastore = create(path());
  const std::uint64_t first = datastore.size_bytes();
  set(datastore, path(), 1);
  datastore.commit();
  datastore.extend(first);
  EXPECT_EQ(datastore.size_bytes(), first);
  datastore.extend(first + 1);
  EXPECT_GT(datastore.size_bytes(), first);
  // The segment now includes the former range of the files, and is zero in it.
  EXPECT_TRUE(all_zero(static_cast<std::byte*>(datastore.segment()) + first,
                       datastore.size_bytes() - first));
  auto* const end = reinterpret_cast<std::uint64_t*>(static_cast<std::byte*>(datastore.segment()) +
                                                     datastore.size_bytes() - 8);
  *end = 99;
  set(datastore, path(), 2);
  datastore.commit();
  datastore.extend(datastore.capacity_bytes());
  EXPECT_EQ(datastore.size_bytes(), kCapacity);
  EXPECT_ERRC(datastore.extend(kCapacity + 1), Errc::invalid_argument);
  datastore.close();
  expect_holds(path(), 2);
  // A later opening can have more.
  Datastore larger = Datastore::open(path(), 2 * kCapacity, options());
  larger.extend(kCapacity + 1);
}

TEST_P(Datastores, CopyAndRemove) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.snapshot(path("snap"));
    set(datastore, path(), 2);
    datastore.commit();
    EXPECT_ERRC(Datastore::copy(path(), path("copy"), options()), Errc::busy);
    EXPECT_ERRC(Datastore::remove(path()), Errc::busy);
  }
  Datastore::copy(path("snap"), path("copy"), options());
  Datastore::remove(path());
  EXPECT_FALSE(Datastore::consistent(path(), options()));
  expect_holds(path("snap"), 1);  // as long as a snapshot needs it, the store stays
  Datastore::remove(path("snap"));
  EXPECT_FALSE(fs::exists(path()));
  EXPECT_FALSE(fs::exists(path("snap")));
  expect_holds(path("copy"), 1);
  EXPECT_ERRC(Datastore::remove(path()), Errc::not_found);
}

// The parent of a path without a slash is no empty path: "" + "/versions" is another directory.
TEST_P(Datastores, ARelativePathIsOfTheWorkingDirectory) {
  const WorkingDirectory inside(path());
  {
    Datastore datastore = create(".");
    set(datastore, ".", 1);
    datastore.snapshot("snap");
    datastore.snapshot("./@one");
    datastore.commit();
  }
  expect_holds("snap", 1);
  Datastore::remove(".");
  Store::open("store").remove_snapshot("one");
  fs::create_directories("versions/one");
  Datastore::remove("snap");
  EXPECT_TRUE(fs::is_empty(path()));
}

TEST_P(Datastores, OtherContentOfTheDirectoryStays) {
  fs::create_directories(path());
  std::ofstream(path() + "/notes.txt") << "mine";
  set(create(path()), path(), 1);
  Datastore::prepare(path());
  EXPECT_TRUE(fs::exists(path() + "/notes.txt"));
  create(path()).commit();
  Datastore::remove(path());
  EXPECT_TRUE(fs::exists(path() + "/notes.txt"));
  // A store with something else in it is not a datastore.
  fs::create_directories(path("x"));
  Store::create(path("x/store")).create_region("main", kMiB).commit();
  EXPECT_ERRC(read(path("x")), Errc::not_found);
}

TEST_P(Datastores, AMalformedLinkIsRefused) {
  for (const char* text : {"", "x", "vellum datastore link\n../ds/store\n",
                           "vellum datastore link\n../ds/store\n../up\n", "other\na\nb\n"}) {
    fs::create_directories(path("l"));
    std::ofstream(path("l/link")) << text;
    EXPECT_ERRC(read(path("l")), Errc::corrupted);
  }
}

TEST_P(Datastores, PrepareClearsAPathWhoseStoreWasRemoved) {
  create(path()).snapshot(path("snap"));
  fs::remove_all(path());
  EXPECT_FALSE(Datastore::consistent(path("snap"), options()));
  {
    Datastore datastore = create(path("snap"));
    set(datastore, path("snap"), 5);
    datastore.commit();
  }
  expect_holds(path("snap"), 5);
  // The same holds for a version that `vellum rm` has removed.
  open(path("snap")).snapshot(path("second"));
  Store::open(path("snap/store")).remove_snapshot("second");
  EXPECT_FALSE(Datastore::consistent(path("second"), options()));
  Datastore::prepare(path("second"));
  open(path("snap")).snapshot(path("second"));
  expect_holds(path("second"), 5);
}

TEST_P(Datastores, CallsOfAClosedDatastoreAreRefused) {
  Datastore datastore;
  EXPECT_FALSE(datastore.is_open());
  EXPECT_ERRC(datastore.commit(), Errc::invalid_argument);
  EXPECT_ERRC(datastore.snapshot(path()), Errc::invalid_argument);
  EXPECT_ERRC(datastore.extend(1), Errc::invalid_argument);
  EXPECT_ERRC(datastore.zero({0, 0}), Errc::invalid_argument);
  create(path()).commit();
  EXPECT_ERRC(read(path()).commit(), Errc::read_only);
  EXPECT_ERRC(read(path()).snapshot(path("s")), Errc::read_only);
  EXPECT_ERRC(read(path()).zero({0, 8}), Errc::read_only);
  std::ofstream(path("file")) << "no directory";
  EXPECT_ERRC(Datastore::prepare(path("file")), Errc::io);
}

// This is how Metall describes objects of a closed datastore: it writes their files.
TEST_P(Datastores, FilesWrittenWhileClosedAreKept) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.snapshot(path("snap"));
    datastore.commit();
  }
  for (const auto& at : {path(), path("snap")}) {
    std::ofstream(Datastore::files_directory(at) + "/metadata/count") << 5;
    {
      Datastore datastore = open(at);
      EXPECT_EQ(metadata(at), 5u);
      *static_cast<std::uint64_t*>(datastore.segment()) = 5;
      datastore.commit();
    }
    expect_holds(at, 5);
  }
}

// Data that was not flushed is not trusted after a crash of the system.
TEST_P(Datastores, AStampOfAnotherBootIsIgnored) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.snapshot(path("snap"));
  }
  expect_holds(path("snap"), 1);
  std::ifstream in(path("snap/closed"));
  std::string version, boot;
  std::getline(in, version);
  std::getline(in, boot);
  ASSERT_EQ(boot.substr(0, 5), "boot ");
  std::ofstream(path("snap/files/metadata/count")) << "torn";
  std::ofstream(path("snap/closed")) << version << "\nboot 0-1-2\n";
  expect_holds(path("snap"), 1);
}

// A file that was written after the last commit is not of that commit.
TEST_P(Datastores, UncommittedFilesAreNotKept) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.commit();
    set(datastore, path(), 2);
    std::ofstream(Datastore::files_directory(path()) + "/one-more") << "x";
  }
  expect_holds(path(), 1);
  set(open(path()), path(), 3);
  expect_holds(path(), 1);
}

// Neither are the files of a commit that failed.
TEST_P(Datastores, FilesOfAFailedCommitAreNotKept) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.commit();
    set(datastore, path(), 2);
    fs::rename(path() + "/store", path("moved"));
    EXPECT_ERRC(datastore.commit(), Errc::io);
    fs::rename(path("moved"), path() + "/store");
  }
  expect_holds(path(), 1);
}

TEST_P(Datastores, ReadersWriteNoFilesWhileAWriterWorks) {
  Datastore datastore = create(path());
  set(datastore, path(), 1);
  datastore.commit();
  set(datastore, path(), 2);
  EXPECT_ERRC(open(path()), Errc::busy);
  EXPECT_ERRC(read(path()), Errc::busy);
  EXPECT_EQ(metadata(path()), 2u);
}

TEST_P(Datastores, ADatastoreIsNotCreatedOverAnother) {
  set(create(path()), path(), 1);
  create(path()).commit();  // over one without a commit
  {
    Datastore datastore = open(path());
    set(datastore, path(), 2);
    datastore.commit();
  }
  EXPECT_ERRC((void)Datastore::create(path(), kCapacity, options()), Errc::already_exists);
  expect_holds(path(), 2);
}

TEST_P(Datastores, ZeroChangesOnlyTheSegment) {
  Datastore datastore = create(path());
  const std::uint64_t size = datastore.size_bytes();
  auto* const last = static_cast<std::byte*>(datastore.segment()) + size - 1;
  *last = std::byte{1};
  datastore.commit();
  EXPECT_ERRC(datastore.zero({size - 1, 2}), Errc::invalid_argument);
  EXPECT_ERRC(datastore.zero({size + 1, 0}), Errc::invalid_argument);
  EXPECT_EQ(*last, std::byte{1});
  datastore.zero({size - 1, 1});
  EXPECT_EQ(*last, std::byte{0});
}

// After a crash each of them finds files to put back, and none is refused.
TEST_P(Datastores, ManyReadersOpenADatastoreAtOnce) {
  {
    Datastore datastore = create(path());
    set(datastore, path(), 1);
    datastore.commit();
    set(datastore, path(), 2);
  }
  std::vector<Child> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(start_child([&] {
      const Datastore datastore = read(path());
      require(word(datastore) == 1 && metadata(path()) == 1, "the last commit is there");
    }));
  }
  for (auto& child : children) EXPECT_CHILD_EXIT(child.wait(), 0);
}

// Segment and file are of one commit, whenever the writer is killed.
TEST_P(Datastores, AfterAKillSegmentAndFilesAreOfOneCommit) {
  create(path()).commit();
  std::mt19937 random(42);
  const Shared<std::atomic<std::uint64_t>> committed;  // the writer's progress
  std::uint64_t last = 0;
  for (int round = 0; round < 8; ++round) {
    Child child = start_child([&] {
      Datastore datastore = open(path());
      for (std::uint64_t value = word(datastore) + 1;; ++value) {
        if (value % 50 == 0 && datastore.size_bytes() < kCapacity) {
          datastore.extend(datastore.size_bytes() + 1);
        }
        set(datastore, path(), value);
        datastore.commit();
        *committed = value;
      }
    });
    while (*committed == last && child.running()) usleep(1'000);
    usleep(static_cast<useconds_t>(random() % 50'000));
    child.kill(SIGKILL);
    EXPECT_CHILD_SIGNAL(child.wait(), SIGKILL);
    ASSERT_TRUE(Datastore::consistent(path(), options()));
    const Datastore datastore = read(path());
    EXPECT_EQ(word(datastore), metadata(path()));
    EXPECT_GE(word(datastore), *committed);
    EXPECT_GT(*committed, last);
    last = *committed = word(datastore);
  }
}

VELLUM_BOTH_ENGINES(Datastores);

}  // namespace
}  // namespace vellum::test
