// Packs in an archive: all operations work as before, and a missing archive is
// not treated as lost.
#include <gtest/gtest.h>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/check.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/gc/tier/tiers_fixture.hpp"

namespace vellum::store::test {
namespace {

namespace stdfs = std::filesystem;

class ArchiveTest : public TiersTest {
 protected:
  std::shared_ptr<StoreDirectory> fresh_at(const std::string& path) {
    return StoreDirectory::open(fs, path);
  }
};

TEST_F(ArchiveTest, EverythingWorksOverTwoDirectories) {
  make(8, 100);
  add_archive();
  const std::size_t packs = packs_in(home()).size();
  ASSERT_GT(packs, 5u);
  const TierReport moved = move(true);
  EXPECT_EQ(moved.packs_moved, packs - 1);  // the active pack is not moved
  EXPECT_EQ(moved.packs_in_use, 0u);
  EXPECT_EQ(packs_in(home()).size(), 1u);
  EXPECT_EQ(packs_in(archive).size(), packs - 1);
  EXPECT_EQ(list_tiers(*fresh())[0].bytes, moved.home_bytes);
  expect_all();
  go_on("t0");
  expect_all();
  for (int i = 0; i < 7; ++i) {
    if (i != 5) remove("s" + std::to_string(i));
  }
  const std::uint64_t archived = list_tiers(*fresh())[1].bytes;
  const GcReport freed = gc();
  EXPECT_GT(freed.packs_punched, 0u);
  EXPECT_LT(list_tiers(*fresh())[1].bytes, archived);
  expect_all();
  EXPECT_GT(gc(9).recompressed.packs, 0u);
  EXPECT_GT(translated_packs(*fresh()), 0u);
  expect_all();
  EXPECT_EQ(stat_store(*fresh()).packs, fresh()->packs().list().size());
  // A second branch, from data in the archive.
  store->create_branch_at("other", read_snapshot(*store, "s5").version, "s5");
  contents["other"] = contents.at("s5");
  expect_all();
  // Packs in the archive that no version needs are removed from there.
  for (int i = 1; i < 8; ++i) {
    if (contents.contains("s" + std::to_string(i))) remove("s" + std::to_string(i));
  }
  store->remove_branch("other");
  contents.erase("other");
  remove("t0");
  rewrite("t1");
  const auto before = packs_in(archive).size();
  EXPECT_GT(gc().packs_removed, 0u);
  EXPECT_LT(packs_in(archive).size(), before);
  expect_all();
  EXPECT_GT(move(true).packs_moved, 0u);
  const TierReport back = move(false);
  EXPECT_GT(back.packs_moved, 0u);
  EXPECT_TRUE(packs_in(archive).empty());
  expect_all();
  remove_tier(*fresh(), archive);
  EXPECT_FALSE(stdfs::exists(archive + "/" + kTierIdName));
  expect_all();
}

TEST_F(ArchiveTest, OneObjectGoesOnThroughAllOfIt) {
  make(6);
  // One object opened packs before the archive existed; one had opened none.
  const auto early = fresh(), idle = fresh();
  auto kept = resolve_kept(*early, "s2");
  const auto source = PageSource::open(*early, kept.version.version, {}, "s2");
  add_archive();
  const TierReport moved = move(true);
  EXPECT_EQ(moved.packs_in_use, 1u);
  EXPECT_GT(moved.packs_moved, 3u);
  expect_same(*source, contents.at("s2"));
  for (const auto& [name, bytes] : contents) {
    expect_same(*open_version(*early, name), bytes);
    expect_same(*open_version(*idle, name), bytes);
  }
  // Its pins are set on the files that have the names.
  const auto other = resolve_kept(*early, "s4");
  EXPECT_EQ(read_roots(*fresh()).kept_open, 2u);
  EXPECT_EQ(move(false).packs_in_use, 1u);
  expect_same(*PageSource::open(*early, other.version.version, {}, "s4"), contents.at("s4"));
  EXPECT_EQ(read_roots(*fresh()).kept_open, 2u);
  collect_garbage(*early, false, nullptr, 9);
  expect_all();
}

TEST_F(ArchiveTest, WhatAWriterWritesStays) {
  make(5);
  add_archive();
  auto writer = BranchWriter::open(*store, "main");
  Model model(kPages);
  model.bytes = contents.at("main");
  Model now(kPages);
  now.bytes = model.bytes;
  for (std::uint64_t i = 0; i < 12; ++i) {
    for (int n = 0; n < 20; ++n) fill_text(now, random() % kPages, random);
    commit(*writer, now, i % 2 == 0);
    if (i % 3 == 0) move(i % 2 == 0);
    contents["main"] = now.bytes;
    expect_all();
  }
  writer.reset();
  move(true);
  expect_all();
}

// The files of the packs in both directories.
std::set<std::string> files_of(const std::string& a, const std::string& b) {
  std::set<std::string> out;
  for (const std::string& directory : {a, b}) {
    if (!stdfs::exists(directory)) continue;
    for (const auto& e : stdfs::directory_iterator(directory)) out.insert(e.path().filename());
  }
  return out;
}

TEST_F(ArchiveTest, OneThatIsNotThereIsAClearErrorAndFreesNothing) {
  make(6);
  add_archive();
  move(true);
  remove("s1");
  const auto files = files_of(home(), archive);
  const std::string moved = dir.path("moved");
  for (const bool mount_point : {false, true}) {
    stdfs::rename(archive, moved);
    if (mount_point) stdfs::create_directory(archive);
    const std::string text = error_text(Errc::io, [&] { open_version(*fresh(), "s3"); });
    EXPECT_TRUE(contains(text, archive)) << text;
    EXPECT_TRUE(contains(text, "s3")) << text;
    EXPECT_TRUE(contains(text, ".pack")) << text;
    for (const int level : {0, 9}) {
      EXPECT_TRUE(contains(error_text(Errc::io, [&] { gc(level); }), archive));
    }
    EXPECT_TRUE(contains(error_text(Errc::io, [&] { stat_store(*fresh()); }), archive));
    error_text(Errc::io, [&] { move(true); });
    error_text(Errc::io, [&] { move(false); });
    error_text(Errc::io, [&] { apply(); });
    error_text(Errc::io, [&] { remove_tier(*fresh(), archive); });
    error_text(Errc::io, [&] { fresh()->create_branch("new", kPageBytes, 0); });
    const auto damages = verify_store(*fresh(), true, nullptr).damages;
    ASSERT_FALSE(damages.empty());
    EXPECT_EQ(damages[0].object, archive);
    EXPECT_TRUE(std::any_of(damages.begin(), damages.end(), [&](const Damage& d) {
      return contains(d.reason, archive) &&
             std::find(d.versions.begin(), d.versions.end(), "snapshot 's3'") != d.versions.end();
    }));
    EXPECT_FALSE(list_tiers(*fresh())[1].present);
    if (mount_point) stdfs::remove_all(archive);
    stdfs::rename(moved, archive);
    EXPECT_EQ(files_of(home(), archive), files);
    expect_all();
  }
  gc();
  expect_all();
}

// A gc that has started when the archive vanishes frees nothing that it cannot read.
TEST_F(ArchiveTest, OneThatGoesWhileGcIsAtWork) {
  make(6);
  add_archive();
  move(true);
  remove("s1");
  remove("s2");
  const std::string moved = dir.path("moved");
  int calls = 0;
  for (int at = 0; at < 12; ++at) {
    calls = 0;
    try {
      collect_garbage(
          *fresh(), false,
          [&](const Progress&) {
            if (calls++ == at) stdfs::rename(archive, moved);
          },
          at % 2 == 0 ? 9 : 0);
    } catch (const Error& e) {
      EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(Errc::io)) << e.what();
    }
    if (stdfs::exists(moved)) stdfs::rename(moved, archive);
    expect_all();
  }
}

TEST_F(ArchiveTest, OneThatMovesIsFoundUnderItsNewPath) {
  make(5);
  add_archive();
  move(true);
  const std::string other_path = dir.path("other_path");
  stdfs::rename(archive, other_path);
  error_text(Errc::io, [&] { open_version(*fresh(), "s1"); });
  // Another empty directory with its old path is not accepted as the archive.
  error_text(Errc::io, [&] { add_archive(); });
  add_tier(*fresh(), TierKind::archive, other_path, 0);
  ASSERT_EQ(list_tiers(*fresh()).size(), 2u);
  expect_all();
  EXPECT_TRUE(
      contains(error_text(Errc::busy, [&] { remove_tier(*fresh(), other_path); }), "holds"));
  // Nor does another store accept it.
  const auto other = StoreDirectory::create(fs, dir.path("other"), small_options());
  error_text(Errc::already_exists, [&] { add_tier(*other, TierKind::archive, other_path, 0); });
  error_text(Errc::already_exists, [&] { add_tier(*fresh(), TierKind::cache, other_path, 0); });
  error_text(Errc::invalid_argument, [&] { add_tier(*fresh(), TierKind::cache, "relative", 0); });
  error_text(Errc::invalid_argument, [&] { add_tier(*fresh(), TierKind::cache, home(), 0); });
  error_text(Errc::already_exists, [&] { add_tier(*fresh(), TierKind::cache, dir.path(), 0); });
  error_text(Errc::not_found, [&] { remove_tier(*fresh(), "/no/such"); });
}

// A copy of a store names the same archive: it may only read there.
TEST_F(ArchiveTest, ACopyOfTheStoreLeavesItAlone) {
  make(5);
  add_archive();
  add_cache();
  move(true);
  apply();
  const std::string copy = dir.path("copy");
  copy_directory(store->path(), copy);
  const auto files = files_of(archive, cache);
  const auto other = [&] { return StoreDirectory::open(fs, copy); };
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*other(), name), bytes);
  expect_no_damage(*other());
  for (int i = 0; i < 5; ++i) other()->remove_snapshot("s" + std::to_string(i));
  for (const int level : {0, 9}) {
    const auto text =
        error_text(Errc::read_only, [&] { collect_garbage(*other(), false, nullptr, level); });
    EXPECT_TRUE(contains(text, store->path())) << text;
  }
  for (const bool to_archive : {true, false}) {
    error_text(Errc::read_only, [&] { move_packs(*other(), {to_archive, {}, 0}, nullptr); });
  }
  error_text(Errc::read_only, [&] { apply_tiers(*other(), false, nullptr); });
  error_text(Errc::read_only, [&] { remove_tier(*other(), archive); });
  EXPECT_FALSE(list_tiers(*other())[1].writable);
  remove_tier(*other(), cache);
  EXPECT_EQ(files_of(archive, cache), files);
  expect_all();
  // With a copy of the archive it is a store of its own.
  copy_directory(archive, dir.path("archive2"));
  add_tier(*other(), TierKind::archive, dir.path("archive2"), 0);
  EXPECT_EQ(collect_garbage(*other(), false, nullptr).snapshots, 0u);
  EXPECT_GT(move_packs(*other(), {false, {}, 0}, nullptr).packs_moved, 0u);
  EXPECT_EQ(files_of(archive, cache), files);
  expect_same(*open_version(*other(), "main"), contents.at("main"));
  expect_all();
  // A moved store keeps its archive by adding it again.
  const std::string moved = dir.path("moved");
  stdfs::rename(store->path(), moved);
  store = StoreDirectory::open(fs, moved);
  error_text(Errc::read_only, [&] { gc(); });
  add_archive();
  gc();
  expect_all();
}

// As in another container, or on another machine: the copy has the path of the other store.
TEST_F(ArchiveTest, ACopyUnderTheSamePathLeavesItAloneToo) {
  make(5);
  add_archive();
  move(true);
  const std::string here = store->path(), original = dir.path("original"), copy = dir.path("copy");
  copy_directory(here, copy);
  stdfs::rename(here, original);
  stdfs::rename(copy, here);
  const auto files = files_of(archive, archive);
  store = fresh_at(here);
  expect_all();
  for (int i = 0; i < 5; ++i) store->remove_snapshot("s" + std::to_string(i));
  for (const int level : {0, 9}) {
    const auto text = error_text(Errc::read_only, [&] { gc(level); });
    EXPECT_TRUE(contains(text, archive) && contains(text, "take the archive over")) << text;
  }
  error_text(Errc::read_only, [&] { move(false); });
  EXPECT_FALSE(list_tiers(*fresh())[1].writable);
  EXPECT_EQ(files_of(archive, archive), files);
  // The original is restored, and intact.
  stdfs::rename(here, copy);
  stdfs::rename(original, here);
  store = fresh_at(here);
  expect_all();
  gc();
  expect_all();
  // Or the original is removed permanently: the copy becomes the owner of the archive. The original
  // could then only read.
  stdfs::rename(here, original);
  stdfs::rename(copy, here);
  store = fresh_at(here);
  add_archive();
  EXPECT_TRUE(list_tiers(*fresh())[1].writable);
  gc();
  expect_same(*open_version(*fresh(), "main"), contents.at("main"));
  stdfs::rename(here, copy);
  stdfs::rename(original, here);
  store = fresh_at(here);
  error_text(Errc::read_only, [&] { gc(); });
}

// The files of an interrupted move.
TEST_F(ArchiveTest, InBothPlacesTheOneAtHomeCounts) {
  make(6);
  add_archive();
  move(true);
  const auto packs = packs_in(archive);
  // One is complete in both directories; of another the archive has an old state; one is garbage.
  stdfs::copy(file_in(archive, packs[0]), file_in(home(), packs[0]));
  stdfs::copy(file_in(archive, packs[1]), file_in(home(), packs[1]));
  stdfs::resize_file(file_in(archive, packs[1]), 100);
  stdfs::copy(file_in(archive, packs[2]), file_in(home(), packs[2]));
  std::ofstream(file_in(archive, packs[2])) << "rubbish";
  std::ofstream(archive + "/" + copy_file_name(packs[3])) << "half";
  std::ofstream(store->tmp_directory() + "/" + copy_file_name(packs[3])) << "half";
  expect_all();
  gc();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(stdfs::exists(file_in(archive, packs[i])));
  EXPECT_FALSE(stdfs::exists(archive + "/" + copy_file_name(packs[3])));
  EXPECT_FALSE(stdfs::exists(store->tmp_directory() + "/" + copy_file_name(packs[3])));
  expect_all();
}

TEST_F(ArchiveTest, TheListOfTiersIsCorrupted) {
  make(5);
  add_archive();
  move(true);
  const std::string file = store->path() + "/" + kTiersName;
  const auto good = base::read_whole(fs, file, 1u << 20);
  const auto files = files_of(home(), archive);
  for (std::size_t at = 0; at <= good.size(); ++at) {
    if (at < good.size()) {
      flip(file, at);
    } else {
      stdfs::resize_file(file, good.size() / 2);
    }
    std::size_t wrong = 0;
    for (const auto& [name, bytes] : contents) {
      try {
        expect_same(*open_version(*fresh(), name), bytes);
      } catch (const Error& e) {
        ++wrong;
        EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(Errc::corrupted)) << e.what();
        EXPECT_TRUE(contains(e.what(), file)) << e.what();
        EXPECT_TRUE(contains(e.what(), name)) << e.what();
      }
    }
    EXPECT_GT(wrong, 0u);
    EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { gc(); }), file));
    EXPECT_FALSE(verify_store(*fresh(), false, nullptr).damages.empty());
    error_text(Errc::corrupted, [&] { list_tiers(*fresh()); });
    error_text(Errc::corrupted, [&] { add_archive(); });
    EXPECT_EQ(files_of(home(), archive), files);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(good.data()),
               static_cast<std::streamsize>(good.size()));
  }
  expect_all();
  // Without the file, the directories are added again.
  stdfs::remove(file);
  add_archive();
  expect_all();
}

TEST_F(ArchiveTest, RepairLooksThereToo) {
  make(5);
  add_archive();
  move(true);
  const auto report = repair_store(fs, store->path(), dir.path("saved"), nullptr);
  EXPECT_TRUE(report.lost.empty());
  const auto saved = StoreDirectory::open(fs, dir.path("saved"));
  for (const auto& [name, bytes] : contents) expect_same(*open_version(*saved, name), bytes);
  stdfs::rename(archive, dir.path("moved"));
  EXPECT_FALSE(repair_store(fs, store->path(), std::nullopt, nullptr).lost.empty());
}

// The coldest packs are moved first: those of old versions.
TEST_F(ArchiveTest, WhatMovesFirst) {
  make(4);
  rewrite("t");  // until the page maps do not name the first packs any more
  add_archive();
  TierReport look = move_packs(*fresh(), {true, {}, 1, true}, nullptr);
  EXPECT_TRUE(packs_in(archive).empty());
  const TierReport done = move(true, {}, 1);
  EXPECT_EQ(look.packs_moved, done.packs_moved);
  EXPECT_EQ(look.home_bytes, done.home_bytes);
  EXPECT_GT(done.packs_moved, 0u);
  EXPECT_GT(packs_in(home()).size(), 1u);
  // The head and the newest snapshot do not need the archive.
  stdfs::rename(archive, dir.path("moved"));
  expect_same(*open_version(*fresh(), "t"), contents.at("t"));
  error_text(Errc::io, [&] { open_version(*fresh(), "s1"); });
  stdfs::rename(dir.path("moved"), archive);
  const std::uint64_t least = list_tiers(*fresh())[0].bytes;
  move(false);
  const std::uint64_t all = list_tiers(*fresh())[0].bytes;
  ASSERT_LT(least, all);
  const TierReport half = move(true, all / 2);
  EXPECT_LE(half.home_bytes, all / 2);
  EXPECT_GT(half.home_bytes, all / 2 - (80u << 10));
  EXPECT_EQ(list_tiers(*fresh())[0].bytes, half.home_bytes);
  limit_home(*fresh(), all / 4);
  EXPECT_LE(apply().home_bytes, all / 4);
  EXPECT_EQ(apply().packs_moved, 0u);
  EXPECT_LE(move(false, all / 2).home_bytes, all / 2);
  expect_all();
}

TEST_F(ArchiveTest, NoArchive) {
  make(3);
  EXPECT_TRUE(contains(error_text(Errc::not_found, [&] { move(true); }), "archive"));
  EXPECT_EQ(move(false).packs_moved, 0u);
  EXPECT_EQ(apply().packs_moved, 0u);
}

}  // namespace
}  // namespace vellum::store::test
