// The newest snapshots by their file are the first of the list of all refs, whoever changed the
// refs, and whatever happened to the file.
#include "store/catalog/snapshots/newest_snapshots.hpp"

#include <atomic>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "base/fail.hpp"
#include "format/newest_snapshots.hpp"
#include "store/catalog/snapshots/order_file.hpp"
#include "store/catalog/snapshots/snapshot_order.hpp"
#include "store/support.hpp"
#include "support/disk/forwarding_fs.hpp"

namespace vellum::store::test {
namespace {

namespace files = std::filesystem;
using format::NewestSnapshots;
using format::SnapshotRef;
using vellum::test::ForwardingFile;
using vellum::test::ForwardingFs;

constexpr std::size_t kMany = format::kMaxNewestSnapshots + 40;

SnapshotRef ref_of(const std::string& name, std::uint64_t order) {
  SnapshotRef ref;
  ref.name = name;
  ref.branch = "main";
  ref.created_ns = 1;
  ref.order = order;
  ref.version.branch_id = 1;
  return ref;
}

std::vector<std::string> names_of(const std::vector<SnapshotRef>& refs) {
  std::vector<std::string> names;
  for (const SnapshotRef& ref : refs) names.push_back(ref.name);
  return names;
}

std::vector<std::string> list_of_all(const PackStore& store) {
  std::vector<NewestSnapshots::Entry> all;
  for (const std::string& name : snapshot_names(store))
    all.push_back({read_snapshot(store, name).order, name});
  std::sort(all.begin(), all.end(), format::comes_before);
  std::vector<std::string> names;
  for (const auto& entry : all) names.push_back(entry.name);
  return names;
}

void expect_newest(const PackStore& store, const std::string& when) {
  const auto all = list_of_all(store);
  for (const std::size_t most : {1u, 10u, 64u, 65u, 128u, 129u}) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    ASSERT_EQ(names_of(newest_snapshots(store, most)), std::vector<std::string>(all.begin(), first))
        << when << ", the newest " << most;
  }
}

// What a program does that does not know the file: the same, without it.
class OlderProgram {
 public:
  explicit OlderProgram(StoreDirectory& store) : store_(store) {}
  void add(const std::string& name) {
    const std::uint64_t order = assigned_order(store_).value_or(0) + 1;
    write(store_.path() + "/snapshots.order",
          format::encode_snapshot_order(order, store_.file_seal()));
    pull(name, order);
  }
  void pull(const std::string& name, std::uint64_t order) {
    const std::string made = store_.tmp_directory() + "/" + name;
    write(made, format::encode_snapshot_ref(ref_of(name, order), store_.file_seal()));
    files::rename(made, ref_path(store_, name));
  }
  void remove(const std::string& name) { files::remove(ref_path(store_, name)); }

 private:
  static void write(const std::string& path, const std::vector<std::byte>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  StoreDirectory& store_;
};

class NewestSnapshotsTest : public testing::Test {
 protected:
  std::string path(const std::string& name = "s") const { return directory_.path(name); }
  std::string file(const std::string& store = "s") const {
    return path(store) + "/snapshots.newest";
  }
  std::shared_ptr<StoreDirectory> create() const {
    return StoreDirectory::create(base::posix_fs(), path(), small_options());
  }
  std::shared_ptr<StoreDirectory> open(base::Fs& fs = base::posix_fs()) const {
    return StoreDirectory::open(fs, path());
  }
  static void add(StoreDirectory& store, const std::string& name, std::uint64_t order = 0) {
    store.create_snapshot(name, ref_of(name, order));
  }
  static void add_many(StoreDirectory& store, std::size_t count = kMany) {
    for (std::size_t i = 0; i < count; ++i) add(store, "v" + std::to_string(i));
  }
  static format::DirectoryState state_of_refs(const PackStore& store) {
    const auto state = base::posix_fs().directory_state(store.snapshots_directory()).value();
    return {state.modified_ns, state.changed_ns, state.inode};
  }
  static std::int64_t time_of_refs(const PackStore& store) {
    return state_of_refs(store).modified_ns;
  }
  NewestSnapshots noted_of(const PackStore& store) const {
    NewestSnapshots noted;
    EXPECT_EQ(format::decode_newest_snapshots(
                  base::read_whole(base::posix_fs(), file(), format::kMaxNewestSnapshotsBytes),
                  store.file_seal(), noted),
              nullptr);
    return noted;
  }
  void put_file(const std::vector<std::byte>& bytes) const {
    std::ofstream(file(), std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  TempDirectory directory_;
};

// Counts the refs that are read, and the lists of all of them.
class CountingFs final : public ForwardingFs {
 public:
  CountingFs() : ForwardingFs(base::posix_fs()) {}
  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    refs += path.ends_with(".ref");
    return ForwardingFs::open(path, mode);
  }
  std::vector<base::DirEntry> list(const std::string& path) const override {
    lists += path.ends_with("/snapshots");
    return ForwardingFs::list(path);
  }
  std::size_t refs = 0;
  mutable std::size_t lists = 0;
};

TEST_F(NewestSnapshotsTest, ReadsOnlyTheRefsThatItReturns) {
  create();
  CountingFs fs;
  const auto store = open(fs);
  add_many(*store);
  store->remove_snapshot("v160");
  add(*store, "last");
  fs.refs = fs.lists = 0;
  EXPECT_EQ(names_of(newest_snapshots(*store, 3)),
            (std::vector<std::string>{"last", "v167", "v166"}));
  EXPECT_EQ(fs.refs, 3U);
  EXPECT_EQ(fs.lists, 0U);
  EXPECT_EQ(newest_snapshots(*store, 100).size(), 100U);
  EXPECT_EQ(fs.lists, 0U);
}

TEST_F(NewestSnapshotsTest, IsTheListOfAllRefsWhoeverChangesThem) {
  std::mt19937_64 random(45);
  const auto store = create();
  OlderProgram older(*store);
  std::size_t made = 0;
  const auto any = [&] {
    const auto all = list_of_all(*store);
    // Mostly one of the newest.
    return all[std::min<std::size_t>(random() % all.size(), random() % 8 == 0 ? SIZE_MAX : 20)];
  };
  add_many(*store, 100);
  for (int step = 0; step < 400; ++step) {
    const std::string name = "n" + std::to_string(made++);
    const std::uint64_t kind = random() % 20;
    const std::uint64_t pulled = 1 + random() % (assigned_order(*store).value() + 3);
    if (kind < 10) add(*store, name);
    if (kind == 10 || kind == 11) add(*store, name, pulled);
    if (kind >= 12 && kind < 15) store->remove_snapshot(any());
    if (kind == 15) older.add(name);
    if (kind == 16) older.pull(name, pulled);
    if (kind == 17) older.remove(any());
    if (kind == 18) {  // a name again, with another order
      const std::string again = any();
      older.remove(again);
      older.add(again);
    }
    if (kind == 19) claim_snapshot_order(*store);
    if (step % 2 == 0) expect_newest(*store, "step " + std::to_string(step));
    if (HasFatalFailure()) return;
  }
}

TEST_F(NewestSnapshotsTest, SnapshotsOfOneOrderAreInTheOrderOfTheirNames) {
  const auto store = create();
  add_many(*store);
  for (const char* name : {"c", "a", "b"}) add(*store, name, kMany);
  expect_newest(*store, "three more of the last order");
  EXPECT_EQ(names_of(newest_snapshots(*store, 2)), (std::vector<std::string>{"a", "b"}));
  // The file ends in the middle of an order.
  for (int i = 0; i < 200; ++i) add(*store, "e" + std::to_string(i), kMany + 1);
  expect_newest(*store, "200 more of one order");
  store->remove_snapshot("e1");
  expect_newest(*store, "one removed");
}

TEST_F(NewestSnapshotsTest, AnOlderProgramsChangeIsSeenAtOnce) {
  const auto store = create();
  OlderProgram older(*store);
  add_many(*store);
  for (int i = 0; i < 50; ++i) {
    add(*store, "mine" + std::to_string(i));
    older.pull("pulled" + std::to_string(i), kMany + 1 + static_cast<std::uint64_t>(i));
    expect_newest(*store, "pulled " + std::to_string(i));
    add(*store, "more" + std::to_string(i));
    older.remove("mine" + std::to_string(i));
    expect_newest(*store, "removed " + std::to_string(i));
    older.add("theirs" + std::to_string(i));
    expect_newest(*store, "added " + std::to_string(i));
  }
}

TEST_F(NewestSnapshotsTest, WritersAtOnceLeaveAFileThatCounts) {
  create();
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      const auto store = open();
      for (int i = 0; i < 60; ++i) {
        add(*store, "t" + std::to_string(t) + "-" + std::to_string(i));
        if (i % 5 == 4) store->remove_snapshot("t" + std::to_string(t) + "-" + std::to_string(i));
        newest_snapshots(*store, 5);
      }
    });
  }
  for (auto& writer : writers) writer.join();
  CountingFs fs;
  const auto store = open(fs);
  expect_newest(*store, "at the end");
  fs.lists = 0;
  newest_snapshots(*store, 10);
  EXPECT_EQ(fs.lists, 0U);
}

// The call with this number fails: alone, or with all that follow it, as if the process were killed.
class FailingFs final : public ForwardingFs {
 public:
  struct Plan {
    std::size_t calls = 0, fails_at = SIZE_MAX;
    bool then_all = false;
    bool is_read_only = false;
    void next() {
      if (is_read_only) fail(Errc::read_only, "a read-only medium");
      ++calls;
      if (calls == fails_at || (then_all && calls > fails_at)) fail(Errc::no_space, "no space");
    }
  };
  explicit FailingFs(Plan& plan) : ForwardingFs(base::posix_fs()), plan_(plan) {}

  std::unique_ptr<base::File> open(const std::string& path, base::OpenMode mode) override {
    if (mode != base::OpenMode::read_only) plan_.next();
    return std::make_unique<FailingFile>(ForwardingFs::open(path, mode), plan_);
  }
  void rename(const std::string& from, const std::string& to) override {
    plan_.next();
    ForwardingFs::rename(from, to);
  }
  void rename_new(const std::string& from, const std::string& to) override {
    plan_.next();
    ForwardingFs::rename_new(from, to);
  }
  void unlink(const std::string& path) override {
    plan_.next();
    ForwardingFs::unlink(path);
  }
  void sync_directory(const std::string& path) override {
    plan_.next();
    ForwardingFs::sync_directory(path);
  }
  void set_directory_time(const std::string& path, std::int64_t time_ns) override {
    plan_.next();
    ForwardingFs::set_directory_time(path, time_ns);
  }

 private:
  class FailingFile final : public ForwardingFile {
   public:
    FailingFile(std::unique_ptr<base::File> below, Plan& plan)
        : ForwardingFile(std::move(below)), plan_(plan) {}
    void pwrite(std::span<const std::byte> bytes, std::uint64_t at) override {
      plan_.next();
      ForwardingFile::pwrite(bytes, at);
    }
    void sync_data() override {
      plan_.next();
      ForwardingFile::sync_data();
    }

   private:
    Plan& plan_;
  };
  Plan& plan_;
};

TEST_F(NewestSnapshotsTest, AFailureOrAKillAtAnyStepLeavesNoWrongFile) {
  const auto whole = create();
  OlderProgram older(*whole);
  add_many(*whole);
  std::size_t made = 0, failed = 0;
  for (const bool then_all : {false, true}) {
    for (int what = 0; what < 4; ++what) {
      for (std::size_t at = 1;; ++at) {
        if (what == 3) files::remove(file());  // the list is written again
        FailingFs::Plan plan{0, at, then_all};
        FailingFs fs(plan);
        const std::string name = "k" + std::to_string(made++);
        if (what == 1) add(*whole, name);
        try {
          const auto store = open(fs);
          if (what == 0) add(*store, name);
          if (what == 1) store->remove_snapshot(name);
          if (what == 2) add(*store, name, kMany);
          if (what == 3) newest_snapshots(*store, 10);
        } catch (const Error&) {
          ++failed;
        }
        const std::string when = "step " + std::to_string(at) + " of " + std::to_string(what);
        expect_newest(*whole, when);
        add(*whole, "after" + std::to_string(made));
        expect_newest(*whole, when + ", and one more");
        if (HasFatalFailure()) return;
        if (plan.calls < at) break;
        ASSERT_LT(at, 100U);
      }
    }
  }
  EXPECT_GT(failed, 20U);
}

TEST_F(NewestSnapshotsTest, AReadOnlyStoreIsListedAndLeftAlone) {
  const auto store = create();
  add_many(*store);
  files::remove(file());
  FailingFs::Plan plan{.is_read_only = true};
  FailingFs fs(plan);
  expect_newest(*open(fs), "without a file");
  EXPECT_FALSE(files::exists(file()));
  expect_newest(*store, "by one that may write");
  EXPECT_TRUE(files::exists(file()));
  expect_newest(*open(fs), "with a file");
}

TEST_F(NewestSnapshotsTest, ACopyOfAStoreIsListed) {
  const auto store = create();
  add_many(*store);
  copy_directory(path(), path("copy"));
  const auto copy = StoreDirectory::open(base::posix_fs(), path("copy"));
  expect_newest(*copy, "the copy");
  add(*copy, "added");
  // The file of one with the refs of the other.
  files::copy_file(file(), file("copy"), files::copy_options::overwrite_existing);
  expect_newest(*copy, "the file of another state");
}

// As by `cp -a store/. copy` or an archive: a ref that the store no longer has stays in the copy.
TEST_F(NewestSnapshotsTest, ACopyIntoAnotherStateWithItsTimesIsNotBelieved) {
  const auto store = create();
  add_many(*store);
  copy_directory(path(), path("copy"));
  store->remove_snapshot("v160");
  const auto copy = StoreDirectory::open(base::posix_fs(), path("copy"));
  files::copy_file(file(), file("copy"), files::copy_options::overwrite_existing);
  base::posix_fs().set_directory_time(copy->snapshots_directory(), time_of_refs(*store));
  expect_newest(*copy, "the copy");
}

// Its snapshot is there before the removal is durable.
class AddingAtSyncFs final : public ForwardingFs {
 public:
  explicit AddingAtSyncFs(std::function<void()> add)
      : ForwardingFs(base::posix_fs()), add_(std::move(add)) {}
  void sync_directory(const std::string& path) override {
    ForwardingFs::sync_directory(path);
    if (path.ends_with("/snapshots")) add_();
  }

 private:
  std::function<void()> add_;
};

TEST_F(NewestSnapshotsTest, AnOlderProgramsChangeDuringARemovalIsSeen) {
  const auto whole = create();
  add_many(*whole);
  OlderProgram older(*whole);
  AddingAtSyncFs fs([&] { older.pull("theirs", kMany); });
  open(fs)->remove_snapshot("v160");
  expect_newest(*whole, "a ref created while another is removed");
}

TEST_F(NewestSnapshotsTest, ARemovalDoesNotWaitForTheLockOfAnother) {
  const auto store = create();
  add_many(*store);
  const auto other = base::posix_fs().open(order_file_path(*store), base::OpenMode::read_write);
  ASSERT_TRUE(other->try_lock_exclusive());
  const std::int64_t start = base::wall_clock_ns();
  store->remove_snapshot("v160");
  EXPECT_LT(base::wall_clock_ns() - start, 10'000'000'000);
  EXPECT_FALSE(files::exists(file()));
  expect_newest(*store, "removed without the lock");
}

TEST_F(NewestSnapshotsTest, AClockThatIsSetBackGivesNoEarlierTime) {
  const auto store = create();
  add_many(*store);
  const std::int64_t later = (base::wall_clock_ns() / 1000 + 3'600'000'000) * 1000;
  base::posix_fs().set_directory_time(store->snapshots_directory(), later);
  NewestSnapshots noted = noted_of(*store);
  noted.refs = state_of_refs(*store);
  put_file(format::encode_newest_snapshots(noted, store->file_seal()));
  add(*store, "added");
  EXPECT_GT(time_of_refs(*store), later);
  const std::int64_t added = time_of_refs(*store);
  store->remove_snapshot("added");
  EXPECT_GT(time_of_refs(*store), added);
  expect_newest(*store, "with the clock behind");
}

TEST_F(NewestSnapshotsTest, AFileThatRemovalsHaveShortenedIsReplacedOnlyIfItIsTooShort) {
  create();
  CountingFs fs;
  const auto store = open(fs);
  add_many(*store, 300);
  const auto lists = [&](std::size_t most) {
    fs.lists = 0;
    newest_snapshots(*store, most);
    return fs.lists;
  };
  std::size_t next = 300;
  for (int i = 0; i < 60; ++i) store->remove_snapshot("v" + std::to_string(--next));
  const std::int64_t before = time_of_refs(*store);
  EXPECT_EQ(lists(64), 0U);
  EXPECT_GT(lists(128), 0U);
  EXPECT_EQ(time_of_refs(*store), before) << "a list of more has made the file unused";
  EXPECT_EQ(lists(64), 0U);
  for (int i = 0; i < 10; ++i) store->remove_snapshot("v" + std::to_string(--next));
  EXPECT_GT(lists(64), 0U);
  EXPECT_EQ(lists(64), 0U);
  EXPECT_EQ(lists(128), 0U);
  expect_newest(*store, "after the removals");
}

TEST_F(NewestSnapshotsTest, HostileBytesInTheFileAreNotBelieved) {
  const auto store = create();
  add_many(*store);
  const auto good = base::read_whole(base::posix_fs(), file(), format::kMaxNewestSnapshotsBytes);
  NewestSnapshots noted;
  ASSERT_EQ(format::decode_newest_snapshots(good, store->file_seal(), noted), nullptr);
  const auto put = [&](const std::vector<std::byte>& bytes) { put_file(bytes); };
  for (std::size_t at = 0; at < good.size(); at += 7) {
    auto bytes = good;
    bytes[at] ^= std::byte{0x20};
    put(bytes);
    expect_newest(*store, "byte " + std::to_string(at));
  }
  put({good.begin(), good.begin() + 40});
  expect_newest(*store, "cut");
  put(std::vector<std::byte>(1u << 20));
  expect_newest(*store, "too large");
  files::remove(file());
  files::create_directory(file());
  expect_newest(*store, "a directory");
  files::remove(file());
  // Sound, but of names and orders that no ref has.
  for (const bool is_order : {true, false}) {
    ASSERT_EQ(format::decode_newest_snapshots(good, store->file_seal(), noted), nullptr);
    if (is_order) {
      std::swap(noted.entries[0].name, noted.entries[1].name);
    } else {
      noted.entries[0].name = "none";
    }
    noted.refs = state_of_refs(*store);
    put(format::encode_newest_snapshots(noted, store->file_seal()));
    expect_newest(*store, "forged");
  }
}

// Two changes within its second look alike there, so there is no file.
class CoarseFs final : public ForwardingFs {
 public:
  CoarseFs() : ForwardingFs(base::posix_fs()) {}
  std::optional<base::DirectoryState> directory_state(const std::string& path) const override {
    auto state = ForwardingFs::directory_state(path);
    if (state) state->modified_ns = state->modified_ns / 1'000'000'000 * 1'000'000'000;
    return state;
  }
};

TEST_F(NewestSnapshotsTest, AFileSystemWithCoarseTimesHasNoFile) {
  create();
  CoarseFs fs;
  const auto store = open(fs);
  add_many(*store);
  expect_newest(*store, "coarse");
  EXPECT_FALSE(files::exists(file()));
}

TEST_F(NewestSnapshotsTest, TellsWhetherASetNamedLatestMayExist) {
  const auto store = create();
  add(*store, "latest");
  EXPECT_FALSE(may_have_latest_members(*store));
  add(*store, "latest+1+main");
  EXPECT_TRUE(may_have_latest_members(*store));
  add_many(*store);
  EXPECT_TRUE(may_have_latest_members(*store)) << "also of one that is no longer noted";
  files::remove(file());
  newest_snapshots(*store, 1);
  EXPECT_TRUE(may_have_latest_members(*store)) << "by the list of all";
}

}  // namespace
}  // namespace vellum::store::test
