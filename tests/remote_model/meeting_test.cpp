// Stores that exchange versions again after each has freed parts of records or rewritten its packs.
// No record of a store or the remote is lost or replaced.
#include <gtest/gtest.h>

#include "remote/objects/remote_file.hpp"
#include "remote_model/stations.hpp"

namespace vellum::remote::meeting {
namespace {

constexpr std::size_t kBlocks = 16;

class Meeting : public testing::Test {
 protected:
  Bytes blocks(std::size_t n = kBlocks) { return texts.of(n * kBlockBytes); }
  // The first or second half of the first block of `from`, and new text for the rest.
  Bytes first_half_of(const Bytes& from) {
    return part(from, 0, kBlockBytes / 2) + texts.of(kBlocks * kBlockBytes - kBlockBytes / 2);
  }
  Bytes second_half_of(const Bytes& from) {
    return texts.of(kBlockBytes / 2) + part(from, kBlockBytes / 2, kBlockBytes) +
           blocks(kBlocks - 1);
  }
  // `a` keeps the first half of a record, in v4; `b` its second half, in v3. Each has rewritten the
  // pack without the other half.
  void make_two_forms() {
    a.create(options(512u << 10));
    v["v1"] = blocks();
    v["v3"] = second_half_of(v["v1"]);
    for (const char* name : {"v2", "v4", "v5", "v6", "v7"}) v[name] = first_half_of(v["v1"]);
    v["v8"] = second_half_of(v["v1"]);
    a.import("main", v["v1"], "v1");
    a.branch("alt", "v1");
    a.import("alt", v["v3"], "v3");
    a.import("main", v["v2"], "v2");
    a.push({"v1", "v2", "v3"});
    b.clone({"v3"});
    b.gc(9);
    for (const char* name : {"v5", "v6", "v7"}) a.import("main", v[name], name);
    a.remove({"v1", "v2", "v3", "v5", "v6", "v7"});
    a.open()->remove_branch("alt");
    a.gc(9);
    a.import("main", v["v4"], "v4");
    a.push({"v4"});
  }
  // The same at the remote, which has no other versions.
  void make_remote_of_two_forms() {
    make_two_forms();
    b.branch("bb", "v3");
    b.import("bb", v["v8"], "v8");
    b.push({"v8"});
    forget_there(fs, {"v1", "v2", "v3"});
    gc_there(fs);
  }
  Contents only(const Names& names) {
    Contents out;
    for (const std::string& name : names) out[name] = v[name];
    return out;
  }

  sim::SimFs fs;
  Texts texts{1};
  Station a{fs, "/a"}, b{fs, "/b"};
  Contents v;
};

TEST_F(Meeting, APullGivesARecordTheSlotsOfBothStores) {
  make_two_forms();
  b.expect(only({"v3"}));
  b.pull({"v4"});
  b.expect(only({"v3", "v4"}));
  b.gc(9);
  b.expect(only({"v3", "v4"}));
}

TEST_F(Meeting, ACloneHasTheSlotsOfBothForms) {
  make_remote_of_two_forms();
  expect_whole_remote(fs);
  for (const Names& names : {Names{"v4", "v8"}, Names{"v8", "v4"}}) {
    Station clone{fs, "/c" + names.front()};
    clone.clone(names);
    clone.expect(only(names));
  }
}

TEST_F(Meeting, FetchedPacksHaveTheSlotsOfBothForms) {
  make_remote_of_two_forms();
  Station lazy{fs, "/l"};
  lazy.clone({"v4", "v8"}, true);
  lazy.expect(only({"v4", "v8"}));
  lazy.pull({}, true);
  lazy.expect(only({"v4", "v8"}));
}

TEST_F(Meeting, OneProcessReadsBothFormsByUrl) {
  make_remote_of_two_forms();
  for (const Names& names : {Names{"v4", "v8", "v4"}, Names{"v8", "v4", "v8"}}) {
    const auto there = at_url(fs);
    for (const std::string& name : names) EXPECT_TRUE(read_all(*there, name) == v[name]) << name;
  }
}

TEST_F(Meeting, APushFromALazyCloneSendsTheSlotsThatItsVersionNeeds) {
  make_remote_of_two_forms();
  Station lazy{fs, "/l"};
  lazy.clone({"v4", "v8"}, true);
  v["x1"] = first_half_of(v["v4"]);
  v["y1"] = second_half_of(v["v8"]);
  lazy.branch("x", "v4");
  lazy.import("x", v["x1"], "x1");
  lazy.branch("y", "v8");
  lazy.import("y", v["y1"], "y1");
  lazy.push({"x1"});
  lazy.push({"y1"});
  expect_whole_remote(fs);
  lazy.expect(only({"x1", "y1"}));
  for (const std::string name : {"x1", "y1"}) {
    EXPECT_TRUE(read_all(*at_url(fs), name) == v[name]) << name;
    Station clone{fs, "/c" + name};
    clone.clone({name});
    clone.expect(only({name}));
  }
}

// `b` has the pack as a translated one, and `v8` is at the remote in that form. `a` has freed its
// part of the record, in the active pack of its branch.
TEST_F(Meeting, APullLeavesTheActivePackOfABranchWhole) {
  a.create(options());
  v["v1"] = blocks();
  v["v8"] = part(v["v1"], 0, kBlockBytes) + blocks(kBlocks - 1);
  v["main"] = blocks();
  a.import("main", v["v1"], "v1");
  a.push({"v1", "main"});
  b.clone({"v1"});
  b.gc(9);
  b.branch("bb", "v1");
  b.import("bb", v["v8"], "v8");
  b.push({"v8"});
  a.import("main", v["main"]);
  a.remove({"v1"});
  a.import("main", v["main"]);
  a.gc();
  a.expect(only({"main"}));
  forget_there(fs, {"v1"});
  {
    // While the branch has a writer the pull is refused, and changes nothing.
    const auto store = a.open();
    const auto writer = store::BranchWriter::open(*store, "main");
    EXPECT_EQ(store::test::error_text(Errc::busy, [&] { a.pull({"v8"}); }).empty(), false);
    store::test::expect_no_damage(*store);
  }
  a.pull({"v8"});
  a.expect(only({"main", "v8"}));
  v["main"] = blocks();
  a.import("main", v["main"], "s");
  v["s"] = v["main"];
  a.expect(only({"main", "s", "v8"}));
  a.gc(9);
  a.expect(only({"main", "s", "v8"}));
}

// Two pieces of a list have the same record.
TEST_F(Meeting, ARecordThatTwoPiecesHaveIsWrittenOnce) {
  a.create(options());
  v["v00"] = blocks();
  v["v01"] = part(v["v00"], 0, 4 * kBlockBytes) + blocks(12);
  a.import("main", v["v00"], "v00");
  a.import("main", v["v01"], "v01");
  a.push({"v00", "v01"});
  b.clone({"v00", "v01"});
  b.remove({"v00"});
  b.gc(9);
  for (int i = 1; i < 5; ++i) {
    const std::string name = "v" + std::to_string(i);
    v[name] = part(v["v01"], 0, static_cast<std::size_t>(5 - i) * kBlockBytes) +
              blocks(kBlocks - static_cast<std::size_t>(5 - i));
    a.import("main", v[name], name);
    a.push({name});
  }
  b.pull();
  b.expect(v);
}

// gc has left only the header of a record that no version needed.
TEST_F(Meeting, APullIgnoresHolesThatGcHasPunched) {
  a.create(options());
  v["v1"] = blocks();
  v["v2"] = blocks(8) + part(v["v1"], 8 * kBlockBytes, 16 * kBlockBytes);
  v["v3"] = v["v2"];
  for (const std::size_t i : {0u, 2u, 4u, 6u}) {
    const Bytes fresh = blocks(1);
    std::copy(fresh.begin(), fresh.end(),
              v["v3"].begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes));
  }
  for (const char* name : {"v1", "v2", "v3"}) a.import("main", v[name], name);
  a.push({"v1", "v2", "v3"});
  b.clone({"v1", "v2", "v3"});
  b.remove({"v1"});
  b.gc(9);
  b.remove({"v2"});
  b.gc();
  b.pull({"v1"});
  b.expect(only({"v1", "v3"}));
}

// The store has a record, in a pack that must be rewritten, which no version needs yet: gc has left
// it, so it is not fetched.
TEST_F(Meeting, ARecordThatStillExistsIsKept) {
  a.create(options());
  v["v1"] = blocks();
  v["v2"] = blocks(8) + part(v["v1"], 8 * kBlockBytes, 16 * kBlockBytes);
  v["v3"] = part(v["v1"], 0, 4 * kBlockBytes) + part(v["v2"], 4 * kBlockBytes, 16 * kBlockBytes);
  for (const char* name : {"v1", "v2", "v3"}) a.import("main", v[name], name);
  a.push({"v1", "v2", "v3"});
  b.clone();
  Station c{fs, "/c"};
  c.clone({"v1"});
  c.gc(9);
  c.branch("cc", "v1");
  v["w"] = part(v["v1"], 0, 8 * kBlockBytes) + blocks(8);
  c.import("cc", v["w"], "w");
  forget_there(fs, {"v1"});
  c.push({"w"});
  b.remove({"v1", "v2", "v3"});  // and no gc
  b.pull({"w", "v3"});
  b.expect(only({"w", "v3"}));
}

// A record that gc has freed in an active pack has no entry in the index that seals the pack later.
TEST_F(Meeting, AStoreGetsItsOwnSnapshotBackIntoAPackThatWasSealedSince) {
  a.create(options(512u << 10));
  Bytes now = blocks(8);
  for (int i = 1; i <= 5; ++i) {
    const std::string name = "v" + std::to_string(i);
    if (i > 1) now = blocks(4) + part(now, 4 * kBlockBytes, 8 * kBlockBytes);
    v[name] = now;
    a.import("main", now, name);
    if (i != 2) continue;
    a.push({"v1", "v2"});
    a.remove({"v1"});
    a.gc();
  }
  a.pull({"v1"});
  a.expect(v);
}

// The first packs were removed, and have no index when they are fetched again.
TEST_F(Meeting, AStoreThatHasItsOwnPacksBackIsWhole) {
  a.create(options(128u << 10));
  for (int i = 1; i <= 6; ++i) {
    v["v" + std::to_string(i)] = blocks();
    a.import("main", v["v" + std::to_string(i)], "v" + std::to_string(i));
    if (i == 2) a.push({"v1", "v2"});
  }
  a.remove({"v1", "v2"});
  a.gc();
  a.pull({"v1", "v2"});
  a.expect(v);
}

// The pull was killed between the branch and its note, and the origin has pushed again.
TEST_F(Meeting, AnInterruptedPullResumesAfterTheNextPush) {
  a.create(options());
  a.import("main", blocks(), "", 1);
  a.push({"main"});
  b.clone();
  a.import("main", blocks(), "", 2);
  a.push({"main"});
  const sim::Disk start = fs.disk();
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    sim::SimFs disk(start);
    disk.cut_power_at(nth);
    bool was_killed = false;
    try {
      Station(disk, "/b").pull();
    } catch (const sim::PowerCut&) {
      was_killed = true;
    } catch (const Error&) {
      was_killed = true;
    }
    sim::SimFs left(disk.disk());
    Station origin(left, "/a"), clone(left, "/b");
    const Bytes now = texts.of(kBlocks * kBlockBytes);
    origin.import("main", now, "", 3);
    origin.push({"main"});
    clone.pull();
    clone.expect({{"main", now}});
    if (!was_killed || HasFailure()) break;
  }
}

// verify reports a version of which no piece has a page.
TEST_F(Meeting, VerifyOfARemoteChecksEachPage) {
  make_remote_of_two_forms();
  const auto objects = objects_on(fs);
  const Remote remote(*objects, read_superblock(*objects).store_id);
  const StoredHead base = remote.newest_head();
  Head next = base.head;
  RemoteVersion& v4 =
      *std::ranges::find(next.versions, "v4", [](const auto& n) { return n.ref.name; });
  const RemoteVersion& v8 = *next.find("v8");
  // A list of v8 without the piece that has its half of the record.
  VersionPieces pieces = remote.pieces_of(v8.list), own = remote.pieces_of(v4.list);
  const format::RecordRef shared = [&] {
    std::set<format::RecordRef> of_v4;
    for (const PieceName& name : own.list) {
      for (const auto& record : remote.piece_index(name)) {
        if (!record.dropped.empty()) of_v4.insert(record.ref);
      }
    }
    for (const PieceName& name : pieces.list) {
      for (const auto& record : remote.piece_index(name)) {
        if (of_v4.contains(record.ref)) return record.ref;
      }
    }
    return format::RecordRef{};
  }();
  ASSERT_NE(shared, format::RecordRef{});
  const auto has_shared = [&](const PieceName& name) {
    const auto records = remote.piece_index(name);
    return std::ranges::find(records, shared, &PieceRecord::ref) != records.end();
  };
  VersionPieces wrong;
  wrong.opening.roots = pieces.opening.roots;
  wrong.opening.root_bytes = pieces.opening.root_bytes;
  for (std::size_t i = 0; i < pieces.list.size(); ++i) {
    if (has_shared(pieces.list[i])) continue;
    wrong.list.push_back(pieces.list[i]);
    wrong.opening.spans.push_back(pieces.opening.spans[i]);
  }
  const auto bytes = encode_piece_list(wrong, remote.file_seal());
  const ObjectName name{{next.generation, base::sha256(bytes)}, bytes.size()};
  objects->put(list_key(name.content), bytes);
  const_cast<RemoteVersion&>(v8).list = {{}, name};
  ASSERT_TRUE(remote.publish(base, std::move(next)).has_value());
  const auto damages = verify_there(fs).damages;
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages.front().versions, Names{"v8"});
  Station clone{fs, "/c"};
  EXPECT_FALSE(store::test::error_text(Errc::corrupted, [&] { clone.clone({"v8"}); }).empty());
  EXPECT_FALSE(clone.is_there());
}

// A copy of a lazy clone has the same writer, and therefore the same hold.
TEST_F(Meeting, FetchingThePacksOfACopyKeepsTheHoldOfTheOriginal) {
  a.create(options());
  v["v1"] = blocks();
  a.import("main", v["v1"], "v1");
  a.push({"v1"});
  Station lazy{fs, "/l"};
  lazy.clone({"v1"}, true);
  for (const char* directory : {"/copy", "/copy/remotes"}) fs.make_directory(directory);
  for (const char* name : {"/vellum.store", "/remotes/origin.remote", "/remotes/origin.pieces"}) {
    const auto bytes = base::read_whole(fs, lazy.path() + name, 1u << 20);
    fs.open(std::string("/copy") + name, base::OpenMode::create_new)->pwrite(bytes, 0);
  }
  for (const char* directory : {"/copy/branches", "/copy/snapshots", "/copy/packs", "/copy/tmp"}) {
    fs.make_directory(directory);
  }
  Station copy{fs, "/copy"};
  copy.pull({"v1"}, true);
  copy.expect(only({"v1"}));
  forget_there(fs, {"v1"});
  gc_there(fs);
  lazy.expect(only({"v1"}));
  lazy.pull({}, true);
  lazy.expect(only({"v1"}));
}

// The order of a version is the same everywhere, in whichever order the versions come.
TEST_F(Meeting, APulledVersionKeepsItsOrder) {
  a.create(options());
  for (const char* name : {"z1", "gone", "y2", "x3"}) {
    a.import("main", v[name] = blocks(2), name);
  }
  a.remove({"gone"});
  a.push({"z1", "y2", "x3"});
  b.clone({"y2"});
  b.pull({"z1"});
  b.pull({"x3"});
  for (const char* name : {"z1", "y2", "x3"}) {
    EXPECT_EQ(store::read_snapshot(*b.open(), name).order,
              store::read_snapshot(*a.open(), name).order)
        << name;
  }
  b.branch("bb", "z1");
  b.import("bb", blocks(2), "own");
  EXPECT_GT(store::read_snapshot(*b.open(), "own").order,
            store::read_snapshot(*a.open(), "x3").order);
}

}  // namespace
}  // namespace vellum::remote::meeting
