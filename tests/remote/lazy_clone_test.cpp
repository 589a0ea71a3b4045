// Lazy clones: content, writing, pushing, pulling, fetching the packs, damage, and gc of store and
// remote.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/expect_error.hpp"
#include "remote/failing_objects.hpp"
#include "remote/holds.hpp"
#include "remote/lazy_fixture.hpp"
#include "remote/repair_remote.hpp"
#include "remote/session/missing_pieces.hpp"
#include "store/check/check.hpp"
#include "support/child.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/sim_fs_lib.hpp"
#include "support/engines.hpp"

namespace vellum::remote::test {
namespace {

using namespace std::chrono_literals;

// Runs a function once, before the n-th call.
class ObjectsWithVisitor final : public ObjectsInFront {
 public:
  ObjectsWithVisitor(std::shared_ptr<ObjectStore> objects, std::uint64_t nth,
                     std::function<void()> visit)
      : ObjectsInFront(std::move(objects)), nth_(nth), visit_(std::move(visit)) {}
  std::uint64_t calls() const { return calls_; }

 private:
  Fate fate() override {
    if (++calls_ == nth_) visit_();
    return Fate::works;
  }
  std::atomic<std::uint64_t> calls_{0};
  const std::uint64_t nth_;
  const std::function<void()> visit_;
};

class LazyCloneTest : public LazyTest {
 protected:
  PullReport bring_all(StoreDirectory& core) const {
    Session session(core, "origin", interfered());
    return pull(session, {{}, true}, nullptr);
  }
  void release(StoreDirectory& core) const {
    Session session(core, "origin", interfered());
    EXPECT_EQ(release_holds(session).size(), 1u);
    EXPECT_TRUE(release_holds(session).empty());
  }
  std::size_t pack_files(const std::string& name) const {
    const std::filesystem::directory_iterator packs(dir.path(name) + "/packs");
    return static_cast<std::size_t>(std::distance(begin(packs), end(packs)));
  }
  RemoteGcReport collect(std::vector<std::string> forgotten = {}) const {
    const auto there = objects();
    const Remote remote(*there, store->store_seal());
    if (!forgotten.empty()) forget_names(remote, forgotten);
    return collect_remote(remote, false, nullptr);
  }
  std::vector<Hold> holds() const {
    const auto there = objects();
    return read_holds(Remote(*there, store->store_seal()));
  }
};

TEST_F(LazyCloneTest, PacksThatOnlyARootNamesExist) {
  int bare = 0;
  push_each_version([&](const std::string& name) {
    const auto copy = clone_lazily("only-" + name, {name});
    expect_contents(*copy, {{name, contents[name]}});
    bare += bare_packs("only-" + name);
    bring_all(*copy);
    expect_contents(*copy, {{name, contents[name]}});
  });
  EXPECT_GT(bare, 0) << "no version had such a pack";
}

TEST_F(LazyCloneTest, EveryVersionHasItsContentAndNoPieceIsFetchedBefore) {
  make(4);
  push_all(*store);
  const auto core = clone_lazily("c");
  EXPECT_EQ(interference->gets_of(kPiecePrefix), 0);
  EXPECT_EQ(pack_files("c"), 0u);
  expect_same_snapshots(*core, *store);
  EXPECT_EQ(core->branch_names(), store->branch_names());
  expect_contents(*core, contents);
  EXPECT_EQ(pack_files("c"), 0u);
  for (const auto& [key, count] : interference->gets()) {
    if (key.starts_with(kPiecePrefix)) {
      EXPECT_EQ(count, 1) << key;
    }
  }
}

// A store that was restored from an older copy, and went on, has pushed to the same remote. No pack
// can have the records of both; the clone stays as it is.
TEST_F(LazyCloneTest, DivergedVersionsStayReadableWhenTheirPacksCannotBeFetched) {
  make(1);
  push_all(*store);
  store::test::copy_directory(dir.path("s"), dir.path("twin"));
  const auto twin = StoreDirectory::open(base::posix_fs(), dir.path("twin"));
  Line other(*twin, "main", 99);
  other.go_on(line);
  other.step("t1");
  step("s1");
  push_names(*store, {"s1", "main"});
  push_names(*twin, {"t1"});
  contents["t1"] = other.bytes();
  const auto copy = clone_lazily("c");
  expect_contents(*copy, contents);
  const std::string text = store::test::error_text(Errc::corrupted, [&] { bring_all(*copy); });
  EXPECT_TRUE(store::test::contains(text, "have diverged")) << text;
  expect_contents(*copy, contents);
  for (const auto& [name, bytes] : contents) {
    expect_contents(*clone_to("of-" + name, {name}), {{name, bytes}});
  }
}

TEST_F(LazyCloneTest, AnInterruptedOneResumesUnlessTheRemoteHasLostItsPieces) {
  make(4);
  push_all(*store);
  clone_lazily("c");
  const auto interrupt = [&] {
    std::filesystem::rename(dir.path("c"), dir.path("c.vellum-clone"));
  };
  interrupt();
  expect_contents(*clone_lazily("c"), contents);
  interrupt();
  std::filesystem::remove(pieces().front());
  EXPECT_ERRC(clone_lazily("c"), Errc::already_exists);
  EXPECT_TRUE(std::filesystem::exists(dir.path("c.vellum-clone")));
}

TEST_F(LazyCloneTest, ACloneIsWrittenAndPushesOnlyNewRecords) {
  make(4);
  push_all(*store);
  const auto core = clone_lazily("c");
  Line here(*core, "main", 9);
  here.go_on(line);
  here.step("new", 2);
  contents["new"] = contents["main"] = here.bytes();
  expect_contents(*core, contents);
  const PushReport report = push_names(*core, {"new", "main"}, interfered());
  EXPECT_GT(report.bytes_uploaded, 0u);
  std::uintmax_t all = 0;
  for (const auto& piece : pieces()) all += std::filesystem::file_size(piece);
  EXPECT_LT(report.bytes_uploaded, all / 4);
  expect_good_remote();
  expect_contents(*clone_to("full"), contents);
  expect_contents(*clone_lazily("other"), contents);
}

TEST_F(LazyCloneTest, ARemoteSnapshotIsPushedUnderAnotherName) {
  make(3);
  push_all(*store);
  const auto core = clone_lazily("c");
  StoreAccess::handle_of(core).create_snapshot("again", "s1");
  contents["again"] = contents["s1"];
  const PushReport report = push_names(*core, {"again"}, interfered());
  EXPECT_GT(report.pieces_used_again, 0u);
  EXPECT_LE(report.objects_uploaded, 1u);  // its list
  expect_contents(*clone_to("full"), contents);
}

TEST_F(LazyCloneTest, APullLeavesNewPacksRemote) {
  make(2);
  push_all(*store);
  const auto core = clone_lazily("c");
  expect_contents(*core, contents);
  for (int i = 2; i < 8; ++i) step("s" + std::to_string(i));
  push_all(*store);
  const auto open_before = open_clone("c");
  pull_names(*core, {}, interfered());
  EXPECT_EQ(pack_files("c"), 0u);
  expect_contents(*core, contents);
  expect_contents(*open_before, contents);
  EXPECT_EQ(holds().size(), 1u);
}

// The clone pulls its own pushed records with another's versions, into packs that are local files.
TEST_F(LazyCloneTest, APullCompletesLocalPacks) {
  make(2);
  push_all(*store);
  const auto core = clone_lazily("c");
  Line here(*core, "main", 9);
  here.go_on(line);
  here.step("mine");
  contents["mine"] = here.bytes();
  here.step("gone");
  contents["gone"] = here.bytes();
  here.step("after", 200);
  contents["after"] = here.bytes();
  push_all(*core, interfered());
  core->remove_snapshot("gone");
  store::collect_garbage(*core, false, nullptr, 9);
  const auto other = clone_to("o");
  Line there(*other, "main", 10);
  there.go_on(here);
  there.step("theirs");
  contents["theirs"] = contents["main"] = there.bytes();
  push_all(*other);
  pull_names(*core, {}, interfered());
  expect_contents(*core, contents);
  bring_all(*core);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), contents);
}

TEST_F(LazyCloneTest, WithAllPacksACloneNeedsNoRemote) {
  make(6);
  push_all(*store);
  const auto core = clone_lazily("c");
  Line here(*core, "main", 9);
  here.go_on(line);
  here.step("new", 2);
  contents["new"] = contents["main"] = here.bytes();
  EXPECT_ERRC(remove_remote(*core, "origin"), Errc::busy);
  const PullReport report = bring_all(*core);
  EXPECT_GT(report.pieces_read, 0u);
  EXPECT_FALSE(has_missing_pieces(base::posix_fs(), dir.path("c")));
  EXPECT_EQ(holds().size(), 1u);  // for copies of the clone
  release(*core);
  EXPECT_TRUE(holds().empty());
  std::filesystem::remove_all(dir.path("r"));
  std::filesystem::remove_all(dir.path("cache"));
  expect_contents(*core, contents);
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), contents);
  remove_remote(*core, "origin");
}

TEST_F(LazyCloneTest, RewrittenPacksAndPiecesOfManyPushesAreFetched) {
  line.begin();
  std::shared_ptr<StoreDirectory> core;
  for (int i = 0; i < 12; ++i) {
    step("s" + std::to_string(i), 3);
    push_all(*store);
    if (i == 3) core = clone_lazily("c");
    if (i % 4 == 3) store::collect_garbage(*store, false, nullptr, 9);
    if (i > 3) pull_names(*core, {}, interfered());
  }
  expect_contents(*core, contents);
  for (const char* name : {"s2", "s5"}) {
    core->remove_snapshot(name);
    contents.erase(name);
  }
  store::collect_garbage(*core, false, nullptr);
  expect_contents(*core, contents);
  bring_all(*core);
  std::filesystem::remove_all(dir.path("r"));
  expect_contents(*StoreDirectory::open(base::posix_fs(), dir.path("c")), contents);
}

TEST_F(LazyCloneTest, GcHereAndItsVersionsThatAreOpenDoNotDisturbEachOther) {
  make(4);
  push_all(*store);
  const auto core = clone_lazily("c");
  Line here(*core, "main", 9);
  here.go_on(line);
  for (int i = 0; i < 4; ++i) here.step("n" + std::to_string(i), 20);
  Store handle = StoreAccess::handle_of(core);
  const Region remote_version = handle.open_version("s1"), both = handle.open_version("n3");
  const auto expected = here.bytes();
  for (const char* name : {"s0", "s2", "n0", "n1", "n2"}) core->remove_snapshot(name);
  store::collect_garbage(*core, false, nullptr, 9);
  expect_bytes(remote_version, contents["s1"]);
  expect_bytes(both, expected);
  store::test::expect_no_damage(*core);
}

TEST_F(LazyCloneTest, StatReadsNoMoreThanPageMaps) {
  make(4);
  push_all(*store);
  const auto core = clone_lazily("c");
  const auto space = store::stat_store(*core), there = store::stat_store(*store);
  ASSERT_EQ(space.versions.size(), there.versions.size());
  for (std::size_t i = 0; i < space.versions.size(); ++i) {
    EXPECT_EQ(space.versions[i].nonzero_bytes, there.versions[i].nonzero_bytes);
    EXPECT_EQ(space.versions[i].unique_bytes, there.versions[i].unique_bytes);
    EXPECT_EQ(space.versions[i].shared_bytes, there.versions[i].shared_bytes);
  }
}

TEST_F(LazyCloneTest, GcOfTheRemoteKeepsWhatOnlyACloneNeeds) {
  make(4);
  push_all(*store);
  const auto core = clone_lazily("c");
  ASSERT_EQ(holds().size(), 1u);
  EXPECT_NE(holds().front().place.find(dir.path("c")), std::string::npos);
  EXPECT_FALSE(holds().front().place.ends_with(kUnfinishedCloneSuffix));
  EXPECT_GT(collect({"s0", "s1", "s2", "s3", "main"}).objects_removed, 0u);  // lists
  expect_contents(*core, contents);
  bring_all(*core);
  release(*core);
  EXPECT_GT(collect().objects_removed, 0u);
  EXPECT_TRUE(pieces().empty());
  expect_contents(*core, contents);
}

// Its hold has the writer as its name. It is released with the clone's own, and another place's is
// not.
TEST_F(LazyCloneTest, TheHoldOfAnOlderVellumCountsUntilItIsReleased) {
  make(2);
  push_all(*store);
  const auto core = clone_lazily("c");
  const auto there = objects();
  Hold hold = holds().front();
  const std::string place = hold.place;
  there->remove(hold_key(hold.id));
  hold.id = read_remote_file(*core, "origin").writer;
  there->put(hold_key(hold.id), encode_hold(hold, store->file_seal()));
  collect({"s0", "s1", "main"});
  expect_contents(*core, contents);
  bring_all(*core);
  hold.place = "another:/c";
  for (const bool is_own : {false, true}) {
    if (is_own) hold.place = place;
    there->put(hold_key(hold.id), encode_hold(hold, store->file_seal()));
    Session session(*core, "origin", interfered());
    EXPECT_EQ(release_holds(session).size(), is_own ? 1u : 0u);
    EXPECT_EQ(holds().size(), is_own ? 0u : 1u);
  }
}

TEST_F(LazyCloneTest, AHoldIsForgottenByItsName) {
  make(2);
  push_all(*store);
  clone_lazily("c");
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  EXPECT_ERRC(forget_hold(remote, "c"), Errc::invalid_argument);
  EXPECT_ERRC(forget_hold(remote, std::string(32, '0')), Errc::not_found);
  forget_hold(remote, hold_name(holds().front().id));
  EXPECT_TRUE(holds().empty());
  collect({"s0", "s1", "main"});
  EXPECT_TRUE(pieces().empty());
}

TEST_F(LazyCloneTest, AHoldThatCannotBeReadEndsAGc) {
  make(2);
  push_all(*store);
  clone_lazily("c");
  forget_names(Remote(*objects(), store->store_seal()), {"s0"});
  const auto before = pieces().size();
  flip_byte(dir.path("r") + "/" + hold_key(holds().front().id), 60);
  EXPECT_ERRC(collect(), Errc::corrupted);
  EXPECT_EQ(pieces().size(), before);
}

TEST_F(LazyCloneTest, ADamagedHoldIsNamedAndPutAgainOrForgotten) {
  make(2);
  push_all(*store);
  const auto core = clone_lazily("c");
  const auto there = objects();
  const Remote remote(*there, store->store_seal());
  const std::string name = hold_name(holds().front().id), key = kHoldPrefix + name;
  const auto held = holds().front().pieces;
  const auto sound = there->get(key, 1u << 20);
  for (std::size_t at = 0; at < sound.size(); at += at < 64 ? 1 : 13) {
    auto damaged = sound;
    damaged[at] ^= std::byte{1};
    there->put(key, damaged);
    const auto report = verify_remote(remote, false, nullptr);
    ASSERT_EQ(report.damages.size(), 1u) << at;
    EXPECT_EQ(report.damages.front().object, key);
    EXPECT_TRUE(report.damages.front().versions.empty());
    const std::string advice = "vellum forget " + url() + " --hold " + name;
    EXPECT_NE(report.damages.front().reason.find(advice), std::string::npos);
    EXPECT_ERROR(collect(), corrupted, advice);
  }
  // A repair does not remove it.
  EXPECT_EQ(repair_remote(*store, url(), nullptr).left.size(), 1u);
  EXPECT_TRUE(there->has(key, sound.size()));
  {
    Session session(*core, "origin");
    pull(session, {}, nullptr);
  }
  ASSERT_EQ(holds().size(), 1u);
  EXPECT_EQ(holds().front().pieces, held);
  expect_good_remote();
  collect();
  // The clone is gone.
  there->put(key, std::vector<std::byte>(sound.begin(), sound.begin() + 50));
  EXPECT_ERRC(collect(), Errc::corrupted);
  forget_hold(remote, name);
  collect();
  expect_good_remote();
}

// Between any two requests of a clone, versions are forgotten and the objects that only they needed
// are collected.
TEST_F(LazyCloneTest, AGcBetweenAnyTwoRequestsOfACloneDoesNoHarm) {
  make(3);
  push_all(*store);
  for (const bool keeps_names : {false, true}) {
    std::vector<std::string> forgotten{"s0", "main"};
    if (!keeps_names) forgotten.insert(forgotten.end(), {"s1", "s2"});
    bool was_late = false;
    for (std::uint64_t nth = 1; !was_late; ++nth) {
      std::filesystem::copy(dir.path("r"), dir.path("kept"),
                            std::filesystem::copy_options::recursive);
      const auto visitor =
          std::make_shared<ObjectsWithVisitor>(objects(), nth, [&] { collect(forgotten); });
      const std::string name = "c" + std::to_string(keeps_names) + std::to_string(nth);
      try {
        clone(base::posix_fs(), url(), dir.path(name), {{"s1", "s2"}, true}, nullptr, visitor);
        const auto core = open_clone(name);
        expect_contents(*core, {{"s1", contents["s1"]}, {"s2", contents["s2"]}});
      } catch (const Error& e) {  // the remote does not have it any more
        EXPECT_FALSE(keeps_names) << nth << ": " << e.what();
        EXPECT_EQ(e.code(), Errc::not_found) << nth << ": " << e.what();
      }
      was_late = visitor->calls() < nth;
      std::filesystem::remove_all(dir.path("r"));
      std::filesystem::rename(dir.path("kept"), dir.path("r"));
      std::filesystem::remove_all(dir.path("cache"));
    }
  }
}

// The same of a gc, of statistics and of a verification: nothing that is still there is missing.
TEST_F(LazyCloneTest, AGcBetweenAnyTwoRequestsOfUpkeepIsNoDamage) {
  make(3);
  push_all(*store);
  const auto seal = store->store_seal();
  const std::vector<std::function<void(const Remote&)>> works = {
      [](const Remote& remote) { collect_remote(remote, false, nullptr); },
      [](const Remote& remote) { space_of_remote(remote); },
      [](const Remote& remote) {
        EXPECT_TRUE(verify_remote(remote, true, nullptr).damages.empty());
      }};
  for (const auto& work : works) {
    bool was_late = false;
    for (std::uint64_t nth = 1; !was_late; ++nth) {
      std::filesystem::copy(dir.path("r"), dir.path("kept"),
                            std::filesystem::copy_options::recursive);
      const auto visitor = std::make_shared<ObjectsWithVisitor>(
          objects(), nth, [&] { collect({"s0", "s1", "main"}); });
      EXPECT_NO_THROW(work(Remote(*visitor, seal))) << nth;
      was_late = visitor->calls() < nth;
      if (!was_late) {
        EXPECT_TRUE(verify_remote(Remote(*objects(), seal), true, nullptr).damages.empty()) << nth;
      }
      std::filesystem::remove_all(dir.path("r"));
      std::filesystem::rename(dir.path("kept"), dir.path("r"));
    }
  }
}

TEST_F(LazyCloneTest, EachDamagedOrMissingPieceIsNamed) {
  make(3);
  push_all(*store);
  const auto core = clone_lazily("c");
  int found = 0;
  for (const auto& piece : pieces()) {
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(piece));
    std::vector<std::function<void()>> damages;
    for (const std::streamoff at : {std::streamoff{40}, size / 2, size - 9}) {
      damages.emplace_back([&piece, at] { flip_byte(piece, at); });
    }
    damages.emplace_back(
        [&] { std::filesystem::resize_file(piece, static_cast<std::uintmax_t>(size / 2)); });
    damages.emplace_back([&] { std::filesystem::remove(piece); });
    for (const auto& damage : damages) {
      std::filesystem::copy(piece, dir.path("kept"));
      damage();
      RemoteOptions without = options();
      without.cache_directory = "";
      const auto fresh = remote::open_store(base::posix_fs(), dir.path("c"), without, interfered());
      const auto report = store::verify_store(*fresh, true, nullptr);
      for (const auto& one : report.damages) {
        found += (one.object + one.reason).find(piece.filename().string()) != std::string::npos;
      }
      EXPECT_FALSE(report.damages.empty()) << piece;
      std::filesystem::rename(dir.path("kept"), piece);
    }
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(store::verify_store(*core, true, nullptr).damages.empty());
}

TEST_F(LazyCloneTest, AnOutageIsNoDamage) {
  make(2);
  push_all(*store);
  clone_lazily("c");
  interference->set_before([](const std::string& key) {
    if (key.starts_with(kPiecePrefix)) throw Error(Errc::io, "the server is gone");
  });
  RemoteOptions impatient = options();
  impatient.longest_wait = 100ms;
  const auto core = remote::open_store(base::posix_fs(), dir.path("c"), impatient, interfered());
  EXPECT_EQ(store::snapshot_names(*core).size(), 2u);
  EXPECT_ERRC(store::verify_store(*core, true, nullptr), Errc::io);
  EXPECT_ERRC(store::collect_garbage(*core, false, nullptr), Errc::io);
  EXPECT_ERRC(store::stat_store(*core), Errc::io);
}

class LazyCloneRegionTest : public LazyCloneTest, public testing::WithParamInterface<Engine> {
 protected:
  void SetUp() override {
    if (!vellum::test::engine_available(GetParam())) GTEST_SKIP() << vellum::test::kNoUffd;
    region_options.engine = GetParam();
    make(4);
    push_all(*store);
  }
  RegionOptions region_options;
};

TEST_P(LazyCloneRegionTest, RegionsAreReadWrittenAndCommitted) {
  interference->set_before([](const std::string&) { std::this_thread::sleep_for(2ms); });
  Store handle = StoreAccess::handle_of(clone_lazily("c"));
  {
    Region region = handle.open_region("main", region_options);
    expect_bytes(region, contents["main"]);
    static_cast<std::byte*>(region.data())[5000] ^= std::byte{1};
    region.commit();
    region.snapshot("new");
  }
  contents["new"] = contents["main"];
  contents["new"][5000] ^= std::byte{1};
  for (const char* name : {"s1", "new"}) {
    expect_bytes(handle.open_version(name, region_options), contents[name]);
  }
}

// A prefetch of ranges fetches all pieces of their remote packs and no others, and keeps dirty
// pages.
TEST_P(LazyCloneRegionTest, RangesOfACloneAreFetchedConcurrently) {
  for (int i = 0; i < 3; ++i) {  // each push creates a piece
    step("", 24);
    push_all(*store);
  }
  Store handle = StoreAccess::handle_of(clone_lazily("c"));
  Region region = handle.open_region("main", region_options);
  static_cast<std::byte*>(region.data())[5000] ^= std::byte{1};
  region.commit();
  contents["main"][5000] ^= std::byte{1};
  std::vector<vellum::ByteRange> all;
  for (std::size_t page = kRemotePages; page-- > 0;) {
    all.push_back({page * format::kPageBytes + 7, 100});
  }
  std::atomic<int> at_once{0};
  std::atomic<bool> several_at_once{false};
  interference->set_before([&](const std::string& key) {
    if (!key.starts_with(kPiecePrefix)) return;
    if (++at_once > 1) several_at_once = true;
    for (int ms = 0; ms < 5000 && !several_at_once; ++ms) std::this_thread::sleep_for(1ms);
    --at_once;
  });
  region.prefetch(all);
  EXPECT_TRUE(several_at_once);
  interference->set_before([](const std::string&) { throw Error(Errc::io, "no requests"); });
  expect_bytes(region, contents["main"]);
  for (const auto& [key, count] : interference->gets()) {
    if (key.starts_with(kPiecePrefix)) {
      EXPECT_EQ(count, 1) << key;
    }
  }
}

// Arguments are the store and the engine.
const vellum::test::ChildProgram kTouchClone(
    "touch a lazy clone", [](const std::vector<std::string>& a) {
      RemoteOptions options;
      options.cache_directory = "";
      options.longest_wait = 200ms;
      Store lazy = Store::open(a[0], options);
      RegionOptions region_options;
      region_options.engine = vellum::test::engine_named(a[1]);
      const Region region = lazy.open_version("s1", region_options);
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < region.size_bytes(); at += format::kPageBytes) {
        sum += static_cast<const unsigned char*>(region.data())[at];
      }
      _exit(sum == 0 ? 1 : 0);
    });

class LazyCloneTouchNoSanitizer : public LazyCloneRegionTest {};

TEST_P(LazyCloneTouchNoSanitizer, ATouchOfAMissingPieceIsASigbusWithItsName) {
  clone_lazily("c");
  for (const auto& piece : pieces()) std::filesystem::remove(piece);
  const auto end =
      vellum::test::run_program("touch a lazy clone", {dir.path("c"), engine_name(GetParam())});
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("snapshot 's1': page "), std::string::npos);
  EXPECT_NE(end.standard_error.find("missing at the remote"), std::string::npos)
      << end.standard_error;
}

TEST_P(LazyCloneTouchNoSanitizer, ATouchDuringAnOutageIsASigbusAfterTheTimeout) {
  clone_lazily("c");
  std::filesystem::rename(dir.path("r") + "/pieces", dir.path("r") + "/gone");
  std::ofstream(dir.path("r") + "/pieces") << "no directory";
  const auto end =
      vellum::test::run_program("touch a lazy clone", {dir.path("c"), engine_name(GetParam())});
  EXPECT_CHILD_SIGNAL(end, SIGBUS);
  EXPECT_NE(end.standard_error.find("timed out"), std::string::npos) << end.standard_error;
}

INSTANTIATE_TEST_SUITE_P(, LazyCloneRegionTest, testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);
INSTANTIATE_TEST_SUITE_P(, LazyCloneTouchNoSanitizer,
                         testing::Values(Engine::uffd, Engine::sigsegv),
                         vellum::test::engine_test_name);

}  // namespace
}  // namespace vellum::remote::test
