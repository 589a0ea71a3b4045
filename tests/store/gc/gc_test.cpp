// gc frees space: the freed and the kept data, and its work concurrent with others.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/space_note.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/packs/record/record_io.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/sanitizers.hpp"

namespace vellum::store::test {
namespace {

constexpr std::size_t kGcPages = 512;

// All bytes are new. The page is therefore stored as a whole.
void fill(Model& model, PageNumber page, std::mt19937_64& random) {
  for (std::size_t i = 0; i < kPageBytes; i += 8) model.store64(page, i, random());
}

// A store with snapshots s0, s1, ...; each rewrites the first `changed` pages.
class GcTest : public SnapshotsTest {
 protected:
  void make(const format::Superblock& options, std::size_t snapshots, std::size_t changed,
            std::function<bool(std::size_t)> named = nullptr, const char* name = "s") {
    const auto writer = create(options, kGcPages, name);
    std::mt19937_64 random(7);
    Model model(kGcPages);
    for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
    for (std::size_t i = 0; i < snapshots; ++i) {
      for (PageNumber p = 0; i != 0 && p < changed; ++p) fill(model, p, random);
      if (named != nullptr && !named(i)) continue;
      commit(*writer, model, true);
      name_head(*writer, model, "s" + std::to_string(i));
    }
  }
};

format::Superblock packs_of(std::uint64_t bytes) {
  format::Superblock options = small_options();
  options.pack_bytes = bytes;
  return options;
}

TEST_F(GcTest, FreesWhatRemovedSnapshotsHadAlone) {
  const auto odd = [](std::size_t i) { return i % 2 == 1; };
  make(packs_of(1 << 20), 20, 100, odd, "only-kept");
  const std::uint64_t ideal = pack_allocated(*store);
  make(packs_of(1 << 20), 20, 100);
  const std::uint64_t before = pack_allocated(*store);
  for (std::size_t i = 0; i < 20; i += 2) remove("s" + std::to_string(i));

  const GcReport look = collect_garbage(*store, true, nullptr);
  EXPECT_EQ(look.freed_bytes, 0u);
  EXPECT_EQ(pack_allocated(*store), before);
  const GcReport report = gc();
  EXPECT_EQ(report.freeable_bytes, look.freeable_bytes);
  EXPECT_EQ(report.snapshots, 10u);
  EXPECT_GE(report.freed_bytes, report.freeable_bytes * 98 / 100);
  const std::uint64_t after = pack_allocated(*store);
  EXPECT_EQ(before - after, report.freed_bytes);
  EXPECT_LT(after, ideal * 105 / 100) << "before " << before << ", ideal " << ideal;
  EXPECT_LT(after, before);
  expect_all();

  EXPECT_LT(gc().freed_bytes, 64u << 10);  // no packs remain
  expect_all();
}

TEST_F(GcTest, FreesEverythingOfABranchThatIsGone) {
  make(packs_of(1 << 20), 3, 100);
  for (int i = 0; i < 3; ++i) remove("s" + std::to_string(i));
  store->remove_branch("main");
  contents.clear();
  const GcReport report = gc();
  EXPECT_EQ(report.packs_removed, report.packs);
  EXPECT_EQ(pack_allocated(*store), 0u);
  EXPECT_TRUE(store->packs().list().empty());
  expect_all();
}

TEST_F(GcTest, FreesRunsAndPagesThatCheckpointsHaveSuperseded) {
  make(small_options(), 1, 0);
  remove("s0");
  {
    auto writer = BranchWriter::open(*store, "main");
    Model model(kGcPages);
    std::mt19937_64 random(3);
    for (int i = 0; i < 12; ++i) {
      for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
      commit(*writer, model, true);
    }
    contents["main"] = model.bytes;
  }
  const std::uint64_t before = pack_allocated(*store);
  gc();
  EXPECT_LT(pack_allocated(*store), before / 8);
  expect_all();
}

// A writer that appends to a pack waits while the kernel punches holes. Hence these are small.
TEST_F(GcTest, FreesInSmallSteps) {
  make(packs_of(64 << 20), 20, 500);
  for (int i = 0; i < 20; ++i) remove("s" + std::to_string(i));
  std::vector<std::uint64_t> freed;
  GcPace pace;
  pace.before_change = [&](std::uint64_t freed_bytes) { freed.push_back(freed_bytes); };
  const GcReport report = collect_garbage(*store, false, nullptr, 0, pace);
  ASSERT_GT(report.freed_bytes, 20u << 20);
  freed.push_back(report.freed_bytes);
  for (std::size_t i = 1; i < freed.size(); ++i) {
    EXPECT_LE(freed[i] - freed[i - 1], 1u << 20) << "step " << i << " of " << freed.size();
  }
  expect_all();
}

// Records that a writer appends to the pack meanwhile do not count as kept by gc: their need is not
// yet known, and the next gc must start in time for them.
TEST_F(GcTest, WhatIsAppendedMeanwhileCountsAsNew) {
  make(packs_of(64 << 20), 4, 500);
  for (int i = 0; i < 4; ++i) remove("s" + std::to_string(i));
  auto writer = BranchWriter::open(*store, "main");
  Model model(kGcPages);
  std::mt19937_64 random(3);
  std::uint64_t appended = 0;
  GcPace pace;
  pace.before_change = [&](std::uint64_t freed_bytes) {
    if (freed_bytes == 0 || appended != 0) return;  // in the middle of a pack
    const std::uint64_t before = pack_allocated(*store);
    for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
    commit(*writer, model, true);
    appended = pack_allocated(*store) - before;
  };
  collect_garbage(*store, false, nullptr, 0, pace);
  contents["main"] = model.bytes;
  ASSERT_GE(appended, 2u << 20);
  EXPECT_GE(gc_outlook(*store, 1).grown_bytes, appended);
  writer.reset();
  expect_all();
}

// The writer continues in a pack with holes and seals it, as do later writers.
TEST_F(GcTest, WritersGoOnInAPackWithHoles) {
  make(packs_of(1 << 20), 10, 60);
  std::mt19937_64 random(5);
  Model model(kGcPages);
  model.bytes = contents.at("main");
  for (int round = 0; round < 6; ++round) {
    if (round < 5) remove("s" + std::to_string(2 * round));
    gc();
    auto writer = BranchWriter::open(*store, "main");
    for (int i = 0; i < 4; ++i) {
      Model now(kGcPages);
      now.bytes = model.bytes;
      for (int n = 0; n < 40; ++n) fill(now, random() % kGcPages, random);
      commit(*writer, now, true);
      model.bytes = now.bytes;
    }
    const std::string name = "r" + std::to_string(round);
    writer->publish_snapshot(name, "");
    contents[name] = contents["main"] = model.bytes;
  }
  gc();
  expect_all();
}

// A later writer finds the records of an earlier one by their headers, around holes.
TEST_F(GcTest, AWriterSealsAPackWithHoles) {
  make(packs_of(4 << 20), 5, 60);
  ASSERT_EQ(store->packs().list().size(), 1u);
  const std::uint64_t pack = store->packs().list().front();
  for (int i = 1; i < 4; ++i) remove("s" + std::to_string(i));
  ASSERT_GT(gc().freed_bytes, 400u << 10);
  std::mt19937_64 random(13);
  Model model(kGcPages);
  {
    auto writer = BranchWriter::open(*store, "main");
    for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
    commit(*writer, model, true);
    contents["main"] = model.bytes;
  }
  EXPECT_GT(store->packs().list().size(), 1u);
  const auto index = index_extent(*store, pack);
  EXPECT_NE(index.to, 0u) << "the first pack is sealed";
  expect_all();
  // Records that the index lists are found by it.
  remove("s4");
  EXPECT_GT(gc().freed_bytes, 200u << 10);
  expect_all();
}

// The copy of a version after its newest root: it keeps the data of an open version, and repair
// finds it. Each may cross the end of a block that could be freed.
TEST_F(GcTest, CopiesOfWhatIsKeptStay) {
  make(packs_of(64 << 20), 120, 3);
  for (int i = 0; i < 120; i += 2) remove("s" + std::to_string(i));
  ASSERT_GT(gc().freed_bytes, 400u << 10);
  const auto fresh = StoreDirectory::open(fs, store->path());
  for (const auto& name : snapshot_names(*fresh)) {
    const auto version = read_snapshot(*fresh, name).version;
    const format::RecordRef& root = version.runs.front().root;
    const Extent copy = version_copy_extent(*fresh, root.pack, root.offset_bytes);
    ASSERT_NE(copy.to, 0u) << name;
    const auto tag = read_record_header(*fresh, root.pack, copy.from).tag();
    EXPECT_NO_THROW(load_record(*fresh, {root.pack, copy.from, tag}, format::RecordType::version))
        << name;
  }
  expect_all();
}

// One page of a pack is needed, and with it its index, which is larger than a block.
TEST_F(GcTest, TheIndexOfASealedPackStays) {
  store = StoreDirectory::create(fs, dir.path("s"), packs_of(8 << 20));
  const std::size_t pages = 2500;
  store->create_branch("main", pages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  std::mt19937_64 random(3);
  Model model(pages);
  for (int round = 0; round < 2; ++round) {
    for (PageNumber p = round == 0 ? 0 : 1; p < pages; ++p) fill(model, p, random);
    commit(*writer, model, true, 1);
  }
  for (PageNumber p = 1; p < pages; ++p) model.zero(p);
  commit(*writer, model, true);
  contents["main"] = model.bytes;
  const std::uint64_t pack = store->packs().list().front();
  const Extent index = index_extent(*store, pack);
  ASSERT_GT(index.to, index.from + 8192);
  ASSERT_GT(gc().freed_bytes, 4u << 20);
  expect_all();  // verify checks the indexes of sealed packs
}

TEST_F(GcTest, LeavesWhatIsOpenAlone) {
  make(packs_of(1 << 20), 6, 100);
  auto reader_store = StoreDirectory::open(fs, store->path());
  auto kept = resolve_kept(*reader_store, "s2");
  const auto source = PageSource::open(*reader_store, kept.version.version, {}, kept.version.label);
  const auto bytes = contents.at("s2");
  // Also the head, although many checkpoints follow.
  auto head = resolve_kept(*reader_store, "main");
  const auto head_source =
      PageSource::open(*reader_store, head.version.version, {}, head.version.label);
  const auto head_bytes = contents.at("main");
  for (int i = 0; i < 6; ++i) remove("s" + std::to_string(i));
  {
    auto writer = BranchWriter::open(*store, "main");
    const auto at_open = writer->source_at_open();
    Model model(kGcPages);
    std::mt19937_64 random(9);
    for (int i = 0; i < 9; ++i) {
      for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
      commit(*writer, model, true);
    }
    contents["main"] = model.bytes;
    const GcReport report = gc();
    EXPECT_EQ(report.open_versions, 2u);  // s2, and the head that reader and writer have opened
    EXPECT_GT(report.freed_bytes, 0u);
    expect_same(*at_open, head_bytes);  // pages that the writer's region has not loaded yet
  }
  expect_same(*source, bytes);
  expect_same(*head_source, head_bytes);
  kept.version_pin.reset();
  head.version_pin.reset();
  EXPECT_GT(gc().freed_bytes, 500u << 10);
  EXPECT_THROW(expect_same(*PageSource::open(*StoreDirectory::open(fs, store->path()),
                                             kept.version.version, {}, "s2"),
                           bytes),
               Error);
  expect_all();
}

// Runs a function when a directory is synced: gc syncs one between reading the names and freeing.
class HookedFs final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  void sync_directory(const std::string& path) override {
    if (hook != nullptr) std::exchange(hook, nullptr)();
    ForwardingFs::sync_directory(path);
  }
  std::function<void()> hook;
};

// Records that a writer appends to its pack during gc are not in the names that gc has
// read.
TEST_F(GcTest, LeavesWhatIsAppendedMeanwhileAlone) {
  make(packs_of(64 << 20), 4, 100);
  for (int i = 0; i < 3; ++i) remove("s" + std::to_string(i));
  auto writer = BranchWriter::open(*store, "main");
  std::mt19937_64 random(4);
  Model model(kGcPages);
  HookedFs hooked(base::posix_fs());
  bool appended = false;
  hooked.hook = [&] {
    for (int round = 0; round < 2; ++round) {
      for (PageNumber p = 0; p < kGcPages; ++p) fill(model, p, random);
      commit(*writer, model, true);
      writer->publish_snapshot("late" + std::to_string(round), "");
      contents["late" + std::to_string(round)] = model.bytes;
    }
    contents["main"] = model.bytes;
    appended = true;
  };
  const auto report = collect_garbage(*StoreDirectory::open(hooked, store->path()), false, nullptr);
  EXPECT_TRUE(appended);
  EXPECT_GT(report.freed_bytes, 0u);
  expect_all();
}

TEST_F(GcTest, OneAtATimeAndNotBesideHeldNames) {
  make(small_options(), 2, 10);
  const auto lock = fs.open(store->path() + "/gc.lock", base::OpenMode::create_new);
  ASSERT_TRUE(lock->try_lock_exclusive());
  EXPECT_TRUE(contains(error_text(Errc::busy, [&] { gc(); }), "another gc"));
}

TEST_F(GcTest, APinThatCannotBeSetKeepsGcAway) {
  make(small_options(), 2, 10);
  fs.fail_nth(Call::pin, 1, Errc::io, true);
  const auto kept = resolve_kept(*store, "s0");
  fs.heal();
  EXPECT_TRUE(kept.version_pin);
  EXPECT_TRUE(contains(error_text(Errc::busy, [&] { gc(); }), "could not pin"));
}

TEST_F(GcTest, DamageStopsItBeforeAnythingIsFreed) {
  make(packs_of(1 << 20), 4, 100);
  remove("s1");
  const std::string ref = store->snapshots_directory() + "/s2.ref";
  const auto file = fs.open(ref, base::OpenMode::read_write);
  const std::array<std::byte, 1> wrong{std::byte{0xff}};
  file->pwrite(wrong, 60);
  const std::uint64_t before = pack_allocated(*store);
  EXPECT_TRUE(contains(error_text(Errc::corrupted, [&] { gc(); }), "s2.ref"));
  EXPECT_EQ(pack_allocated(*store), before);
}

// Every call of gc fails in turn, once; then gc runs again. Under sanitizers only the first ones do.
TEST_F(GcTest, FailingCallsHurtNothing) {
  constexpr std::uint64_t kEnd = vellum::test::kSanitizer ? 3 : 40;
  for (const Call call : {Call::punch, Call::unlink, Call::truncate, Call::sync_dir, Call::open,
                          Call::create, Call::write, Call::sync, Call::rename}) {
    for (const Errc code : {Errc::io, Errc::no_space}) {
      for (std::uint64_t nth = 1; nth < kEnd; nth += nth < 4 ? 1 : 9) {
        const std::string name = "f" + std::to_string(static_cast<int>(call)) + "-" +
                                 std::to_string(nth) + "-" + std::to_string(static_cast<int>(code));
        contents.clear();
        make(packs_of(256 << 10), 4, 60, nullptr, name.c_str());
        remove("s0");
        remove("s2");
        fs.fail_nth(call, nth, code);
        // A failure that affects only the census is no error.
        try {
          gc();
        } catch (const Error& e) {
          EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
        }
        const bool failed = fs.seen(call) >= nth;
        fs.heal();
        expect_all();
        gc();
        expect_all();
        if (!failed) break;
      }
    }
  }
}

TEST_F(GcTest, WithoutHolesOnlyWholePacksGo) {
  make(packs_of(256 << 10), 6, 200);
  for (int i = 0; i < 5; ++i) remove("s" + std::to_string(i));
  fs.fail_nth(Call::punch, 1, Errc::unsupported, true);
  const GcReport report = gc();
  EXPECT_FALSE(report.holes_supported);
  EXPECT_LT(report.freed_bytes, report.freeable_bytes);
  fs.heal();
  expect_all();
}

}  // namespace
}  // namespace vellum::store::test
