// A pull replaces packs while versions in them are open: their readers keep every byte, also after
// the names are removed, and whoever is killed meanwhile.
#include <gtest/gtest.h>

#include "remote/failing_objects.hpp"
#include "remote_model/stations.hpp"
#include "store/catalog/lock/lock_bytes.hpp"
#include "store/packs/former_file.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::remote::meeting {
namespace {

constexpr std::size_t kVersionBlocks = 8;

// A version that is open, and that has read nothing yet.
struct OpenVersion {
  OpenVersion(std::shared_ptr<StoreDirectory> in, const std::string& name, Bytes expected)
      : store(std::move(in)), bytes(std::move(expected)) {
    store::NamesShared names(*store);
    source = store::test::open_version(*store, name);
    source->keep(
        store::VersionPin(*store, std::move(names), store::resolve_version(*store, name).version));
  }
  void expect_whole() const { store::test::expect_same(*source, bytes); }

  std::shared_ptr<StoreDirectory> store;
  std::shared_ptr<store::PageSource> source;
  Bytes bytes;
};

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

// A process that is killed before its nth change of the file system. Others use the one below.
class DyingFs final : public vellum::test::HookFs {
 public:
  DyingFs(base::Fs& below, std::uint64_t nth) : HookFs(below), left_(nth - 1) {
    const auto before_change = [this](const std::string&) {
      if (left_ == 0) throw Killed();
      --left_;
    };
    hooks.before_create = hooks.before_write = hooks.before_rename = before_change;
    hooks.before_link = hooks.before_unlink = hooks.before_make_directory = before_change;
  }

 private:
  std::uint64_t left_;
};

class PullBesideReaders : public testing::Test {
 protected:
  Bytes blocks(std::size_t n = kVersionBlocks) { return texts.of(n * kBlockBytes); }

  // `b` has v1 in a translated pack. A pull of v2 rewrites it, and one of v3 does again.
  void make() {
    a.create(options());
    v["v1"] = blocks();
    a.import("main", v["v1"], "v1");
    a.push({"v1"});
    b->clone({"v1"});
    b->gc(9);
    for (const char* name : {"v2", "v3"}) {
      v[name] = part(v["v1"], 0, 2 * kBlockBytes) + blocks(kVersionBlocks - 2);
      a.import("main", v[name], name);
      a.push({name});
    }
    ASSERT_TRUE(is_translated("v1"));
  }
  bool is_translated(const std::string& name) {
    const auto store = b->open();
    const auto pack = store::resolve_version(*store, name).version.runs.front().root.pack;
    store->packs().open(pack);
    return store->packs().translation(pack) != nullptr;
  }
  static std::size_t former_files(const Station& station) {
    const auto store = station.open();
    return store::former_files(store->fs(), store->packs().places()).size();
  }
  Contents only(const Names& names) {
    Contents out;
    for (const std::string& name : names) out[name] = v[name];
    return out;
  }
  OpenVersion open(const std::string& name) { return {b->open(), name, v[name]}; }
  // Removes the name of an open version, and lets gc free everything that it may.
  void expect_whole_without_its_name(const OpenVersion& reader, const std::string& name) {
    const auto store = b->open();
    if (store::has_snapshot(*store, name)) store->remove_snapshot(name);
    b->gc();
    b->gc(9);
    reader.store->packs().refresh();
    reader.expect_whole();
    store::test::expect_no_damage(*b->open());
  }

  sim::SimFs fs;
  Texts texts{7};
  Station a{fs, "/a"};
  std::optional<Station> b{std::in_place, fs, "/b"};
  Contents v;
};

TEST_F(PullBesideReaders, AReaderKeepsItsVersionAndGcFreesTheFormerFileAfterIt) {
  make();
  std::optional<OpenVersion> reader = open("v1");
  b->pull({"v2"});
  EXPECT_EQ(former_files(*b), 1u);
  b->expect(only({"v1", "v2"}));
  expect_whole_without_its_name(*reader, "v1");
  EXPECT_EQ(former_files(*b), 1u);
  reader.reset();
  const auto report = store::collect_garbage(*b->open(), false, nullptr);
  EXPECT_EQ(report.open_versions, 0u);
  EXPECT_GT(report.freed_bytes, 0u);
  EXPECT_EQ(former_files(*b), 0u);
  b->expect(only({"v2"}));
}

TEST_F(PullBesideReaders, AReaderOfThePullingHandle) {
  make();
  const auto store = b->open();
  std::optional<OpenVersion> reader;
  reader.emplace(store, "v1", v["v1"]);
  {
    Session session(*store, "origin", objects_on(fs));
    remote::pull(session, {{"v2"}}, nullptr);
  }
  reader->expect_whole();
  expect_whole_without_its_name(*reader, "v1");
  store::collect_garbage(*store, false, nullptr);
  reader->expect_whole();
  reader.reset();
  store::collect_garbage(*store, false, nullptr);
  EXPECT_EQ(former_files(*b), 0u);
  b->expect(only({"v2"}));
}

// Each reader has another file of the pack.
TEST_F(PullBesideReaders, APackIsReplacedTwice) {
  make();
  std::optional<OpenVersion> first = open("v1");
  b->pull({"v2"});
  std::optional<OpenVersion> second = open("v1");
  b->pull({"v3"});
  EXPECT_EQ(former_files(*b), 2u);
  OpenVersion third = open("v1");
  for (const OpenVersion* reader : {&*first, &*second, &third}) {
    expect_whole_without_its_name(*reader, "v1");
  }
  first.reset();
  b->gc();
  EXPECT_EQ(former_files(*b), 1u);
  second->expect_whole();
  second.reset();
  b->gc(9);
  EXPECT_EQ(former_files(*b), 0u);
  third.expect_whole();
  b->expect(only({"v2", "v3"}));
}

// Calls a function before the first piece is read, when the pull has read the store's versions.
class StepBeforeAPiece final : public test::ObjectsInFront {
 public:
  StepBeforeAPiece(std::shared_ptr<ObjectStore> objects, std::function<void()> step)
      : ObjectsInFront(std::move(objects)), step_(std::move(step)) {}
  std::vector<std::byte> get(const std::string& key, std::uint64_t limit) override {
    if (key.starts_with("pieces/")) std::call_once(once_, step_);
    return ObjectsInFront::get(key, limit);
  }

 private:
  Fate fate() override { return Fate::works; }
  const std::function<void()> step_;
  std::once_flag once_;
};

// Another process commits to the branch of the pack, and closes it, while the pull fetches pieces.
TEST_F(PullBesideReaders, ARewrittenPackHasWhatItsWriterHasAppendedMeanwhile) {
  make();
  b->branch("bb", "v1");
  constexpr std::size_t kOwnBlocks = kVersionBlocks - 1;
  v["w"] =
      blocks(kOwnBlocks) + part(v["v1"], kOwnBlocks * kBlockBytes, kVersionBlocks * kBlockBytes);
  b->import("bb", v["w"], "w");
  b->push({"w"});
  forget_there(fs, {"v1"});
  v["main"] = blocks();
  a.import("main", v["main"]);
  a.remove({"v1", "v2", "v3"});
  a.gc();
  bool committed = false;
  const auto commit = [&] {
    v["main"] = blocks();
    a.import("main", v["main"], "late");
    v["late"] = v["main"];
    committed = true;
  };
  {
    const auto store = a.open();
    Session session(*store, "origin",
                    std::make_shared<StepBeforeAPiece>(
                        std::make_unique<DirectoryEngine>(fs, kRemotePath), commit));
    remote::pull(session, {{"w"}}, nullptr);
  }
  ASSERT_TRUE(committed);
  a.expect(only({"main", "late", "w"}));
  a.gc();
  a.expect(only({"main", "late", "w"}));
}

// Otherwise a version could be pinned between the look for pins and the rename, in the old file.
TEST_F(PullBesideReaders, NoVersionIsPinnedWhileAPackIsReplaced) {
  make();
  std::size_t replaced = 0;
  vellum::test::HookFs watched(fs);
  watched.hooks.before_rename = [&](const std::string& path) {
    std::uint64_t pack = 0;
    if (!store::parse_pack_file_name(path.substr(path.rfind('/') + 1), pack)) return;
    const auto names = fs.open(b->path() + "/vellum.store", base::OpenMode::read_only);
    EXPECT_TRUE(names->byte_locked(store::kNamesByte));
    ++replaced;
  };
  Station(watched, b->path()).pull({"v2"});
  EXPECT_EQ(replaced, 1u);
}

// A pack without a reader leaves no former file.
TEST_F(PullBesideReaders, WithoutAReaderNothingIsLeft) {
  make();
  open("v1").expect_whole();
  b->pull();
  EXPECT_EQ(former_files(*b), 0u);
  b->expect(only({"v1", "v2", "v3"}));
}

// The pack is the active one of a branch of `a`, which has freed the block that w shares with v1.
// The version that is open has lost its name before the pull.
TEST_F(PullBesideReaders, ARewrittenPackKeepsTheCopiesOfItsVersions) {
  make();
  b->branch("bb", "v1");
  // So little of a piece that the push does not use it again.
  constexpr std::size_t kOwnBlocks = kVersionBlocks - 1;
  v["w"] =
      blocks(kOwnBlocks) + part(v["v1"], kOwnBlocks * kBlockBytes, kVersionBlocks * kBlockBytes);
  b->import("bb", v["w"], "w");
  b->push({"w"});
  forget_there(fs, {"v1"});
  v["main"] = blocks();
  a.import("main", v["main"]);
  std::optional<OpenVersion> reader;
  reader.emplace(a.open(), "v3", v["v3"]);
  a.remove({"v1", "v2", "v3"});
  a.gc();
  a.pull({"w"});
  EXPECT_EQ(former_files(a), 1u);
  a.gc();
  a.gc(9);
  reader->store->packs().refresh();
  reader->expect_whole();
  a.expect(only({"main", "w"}));
  reader.reset();
  a.gc();
  EXPECT_EQ(former_files(a), 0u);
  a.expect(only({"main", "w"}));
}

TEST_F(PullBesideReaders, WithoutSecondNamesThePullIsRefused) {
  make();
  std::optional<OpenVersion> reader = open("v1");
  vellum::test::HookFs without_links(fs);
  without_links.hooks.before_link = [](const std::string& path) {
    throw Error(Errc::unsupported, path + ": link: Operation not permitted");
  };
  Station there{without_links, "/b"};
  const std::string text = store::test::error_text(Errc::busy, [&] { there.pull({"v2"}); });
  EXPECT_NE(text.find("close the version"), std::string::npos) << text;
  reader->expect_whole();
  b->expect(only({"v1"}));
  reader.reset();
  there.pull({"v2"});
  b->expect(only({"v1", "v2"}));
}

// The reader lives on. Whatever the killed process has left, the next one goes on from there.
TEST_F(PullBesideReaders, ThePullIsKilledAtEachStep) {
  make();
  const sim::Disk start = fs.disk();
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    sim::SimFs disk(start);
    b.emplace(disk, "/b");
    std::optional<OpenVersion> reader = open("v1");
    bool was_killed = false;
    try {
      DyingFs dying(disk, nth);
      Station(dying, "/b").pull({"v2"});
    } catch (const std::runtime_error&) {
      was_killed = true;
    }
    b->expect(only({"v1"}));
    if (nth % 2 == 0) b->gc(9);
    b->pull({"v2"});
    b->expect(only({"v1", "v2"}));
    expect_whole_without_its_name(*reader, "v1");
    reader.reset();
    b->gc();
    EXPECT_EQ(former_files(*b), 0u);
    b->expect(only({"v2"}));
    if (!was_killed || HasFailure()) break;
  }
}

TEST_F(PullBesideReaders, GcIsKilledAtEachStep) {
  make();
  const sim::Disk start = fs.disk();
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    sim::SimFs disk(start);
    b.emplace(disk, "/b");
    std::optional<OpenVersion> reader = open("v1");
    b->pull({"v2"});
    b->remove({"v1"});
    bool was_killed = false;
    const auto gc = [&] {
      try {
        DyingFs dying(disk, nth);
        Station(dying, "/b").gc(nth % 2 == 0 ? 9 : 0);
      } catch (const std::runtime_error&) {
        was_killed = true;
      }
    };
    gc();
    EXPECT_EQ(former_files(*b), 1u);
    b->expect(only({"v2"}));
    expect_whole_without_its_name(*reader, "v1");
    reader.reset();
    gc();
    b->expect(only({"v2"}));
    b->gc();
    EXPECT_EQ(former_files(*b), 0u);
    b->expect(only({"v2"}));
    if ((!was_killed && nth > 2) || HasFailure()) break;
  }
}

// With the power, the reader is gone, too.
TEST_F(PullBesideReaders, ThePowerFailsAtEachStep) {
  make();
  const sim::Disk start = fs.disk();
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    sim::SimFs disk(start);
    std::optional<OpenVersion> reader;
    reader.emplace(Station(disk, "/b").open(), "v1", v["v1"]);
    disk.cut_power_at(nth);
    bool was_cut = false;
    try {
      Station(disk, "/b").pull({"v2"});
      reader.reset();
      Station(disk, "/b").gc();
    } catch (const std::runtime_error&) {
      was_cut = true;
    }
    sim::SimFs left(disk.disk());
    b.emplace(left, "/b");
    b->expect(only({"v1"}));
    b->pull({"v2"});
    b->gc();
    EXPECT_EQ(former_files(*b), 0u);
    b->expect(only({"v1", "v2"}));
    if (!was_cut || HasFailure()) break;
  }
}

}  // namespace
}  // namespace vellum::remote::meeting
