// Interrupted moves and copies: by a power cut at every change, a failed call, or a kill; and
// other processes concurrent with them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/gc/tier/tiers_fixture.hpp"
#include "support/child.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/sanitizers.hpp"
#include "support/shared.hpp"

namespace vellum::store::test {
namespace {

using vellum::test::Child;
using vellum::test::start_child;

using Contents = std::map<std::string, std::vector<std::byte>>;

constexpr std::size_t kTierCrashPages = 48;

// A store with four snapshots in packs of 16 KiB.
Contents make_store(base::Fs& fs, const std::string& path, std::mt19937_64& random) {
  Contents contents;
  format::Superblock options = small_options();
  options.pack_bytes = 16u << 10;
  auto store = StoreDirectory::create(fs, path, options);
  store->create_branch("main", kTierCrashPages * kPageBytes, 0);
  auto writer = BranchWriter::open(*store, "main");
  Model model(kTierCrashPages);
  for (PageNumber p = 0; p < kTierCrashPages; ++p) fill_text(model, p, random);
  for (int i = 0; i < 4; ++i) {
    for (int n = 0; n < 16; ++n) fill_text(model, random() % kTierCrashPages, random);
    commit(*writer, model, true);
    const std::string name = "s" + std::to_string(i);
    writer->publish_snapshot(name, "");
    contents[name] = contents["main"] = model.bytes;
  }
  return contents;
}

void expect_contents(StoreDirectory& store, const Contents& contents) {
  for (const auto& [name, bytes] : contents) expect_same(*open_version(store, name), bytes);
  expect_no_damage(store);
}

// All operations that move packs, in an order that uses each direction more than once.
void work(base::Fs& fs) {
  const auto store = [&] { return StoreDirectory::open(fs, "/s"); };
  add_tier(*store(), TierKind::archive, "/archive", 0);
  add_tier(*store(), TierKind::cache, "/cache", 0);
  limit_home(*store(), 40u << 10);
  apply_tiers(*store(), false, nullptr);
  collect_garbage(*store(), false, nullptr, 9);
  move_packs(*store(), {false, {}, 0}, nullptr);
  limit_home(*store(), 0);
  move_packs(*store(), {true, {}, 1}, nullptr);
  move_packs(*store(), {false, {}, 0}, nullptr);
  remove_tier(*store(), "/cache");
  remove_tier(*store(), "/archive");
}

std::size_t count_packs(base::Fs& fs, const std::string& directory) {
  std::size_t n = 0;
  std::uint64_t pack = 0;
  if (!fs.exists(directory)) return 0;
  for (const auto& e : fs.list(directory)) n += parse_pack_file_name(e.name, pack) ? 1 : 0;
  return n;
}

// Checks the state after a power cut during work.
class ImagesOfTiers {
 public:
  explicit ImagesOfTiers(const Contents& contents) : contents_(contents) {}

  void look_at(const sim::Disk& image) {
    sim::SimFs disk(image);
    count(disk);
    expect_all(disk);
    if (images_ % 3 == 0) lose_cache(disk);
    if (images_ % 24 == 0) work_again(disk);
    ++images_;
  }
  void expect_enough() const {
    std::printf("  %llu images; packs in the archive in %llu, in both places in %llu\n",
                static_cast<unsigned long long>(images_),
                static_cast<unsigned long long>(archived_),
                static_cast<unsigned long long>(in_both_));
    EXPECT_GT(images_, 400u);
    EXPECT_GT(archived_, 200u);
    EXPECT_GT(in_both_, 10u);
  }

 private:
  void count(sim::SimFs& disk) {
    const std::size_t there = count_packs(disk, "/archive"), home = count_packs(disk, "/s/packs");
    archived_ += there != 0 ? 1 : 0;
    in_both_ += there + home > StoreDirectory::open(disk, "/s")->packs().list().size() ? 1 : 0;
  }
  void expect_all(sim::SimFs& disk) {
    expect_contents(*StoreDirectory::open(disk, "/s"), contents_);
  }
  // Permanently.
  void lose_cache(sim::SimFs& disk) {
    if (!disk.exists("/cache")) return;
    for (const auto& e : disk.list("/cache")) disk.unlink("/cache/" + e.name);
    expect_all(disk);
  }
  void work_again(sim::SimFs& disk) {
    collect_garbage(*StoreDirectory::open(disk, "/s"), false, nullptr, 9);
    expect_all(disk);
    work(disk);
    expect_all(disk);
  }

  const Contents& contents_;
  std::uint64_t images_ = 0, archived_ = 0, in_both_ = 0;
};

TEST(TierCrash, APowerCutAtAnyChangeLosesNothing) {
  constexpr std::size_t kAtWork = 1;
  std::mt19937_64 random(21);
  sim::SimFs fs;
  fs.start_log();
  Contents contents = make_store(fs, "/s", random);
  StoreDirectory::open(fs, "/s")->remove_snapshot("s0");
  contents.erase("s0");
  fs.allow_states(kAtWork, kAtWork);
  work(fs);
  fs.stop_log();
  ImagesOfTiers images(contents);
  sim::each_image_once(fs, kAtWork, {5, 10, 5, 6}, [&](const sim::Disk& image) {
    if (!testing::Test::HasFailure()) images.look_at(image);
  });
  images.expect_enough();
}

// A process that is killed when it would sync a directory.
class KilledAtSync final : public vellum::test::ForwardingFs {
 public:
  struct Killed {};
  KilledAtSync(base::Fs& below, std::string directory)
      : ForwardingFs(below), directory_(std::move(directory)) {}
  void sync_directory(const std::string& path) override {
    if (path == directory_) throw Killed();
    ForwardingFs::sync_directory(path);
  }

 private:
  const std::string directory_;
};

// The name of a pack at home may not be durable yet; its name in the archive is.
TEST(TierCrash, ACopyThatAKilledMoveHasLeftIsRemovedOnceThePackIsHomeAndStaysAway) {
  std::mt19937_64 random(22);
  sim::SimFs fs;
  const Contents contents = make_store(fs, "/s", random);
  add_tier(*StoreDirectory::open(fs, "/s"), TierKind::archive, "/archive", 0);
  move_packs(*StoreDirectory::open(fs, "/s"), {true, {}, 0}, nullptr);
  const std::size_t archived = count_packs(fs, "/archive");
  ASSERT_GT(archived, 1u);
  fs.start_log();
  fs.allow_states(0, 1);
  KilledAtSync killed(fs, "/s/packs");
  EXPECT_THROW(move_packs(*StoreDirectory::open(killed, "/s"), {false, {}, 0}, nullptr),
               KilledAtSync::Killed);
  ASSERT_EQ(count_packs(fs, "/archive"), archived);
  remove_leftovers(*StoreDirectory::open(fs, "/s"), GcExclusive(*StoreDirectory::open(fs, "/s")));
  ASSERT_EQ(count_packs(fs, "/archive"), archived - 1);
  fs.allow_states(1, 1);
  fs.stop_log();
  std::size_t done = 0;
  sim::CrashImages(fs, {5, 10, 5, 6}, 5)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        if (testing::Test::HasFailure()) return;
        sim::SimFs disk(image);
        expect_contents(*StoreDirectory::open(disk, "/s"), contents);
        if (low == 0) return;
        EXPECT_EQ(count_packs(disk, "/archive"), archived - 1);
        ++done;
      });
  EXPECT_GT(done, 0u);
}

class TierFaults : public TiersTest {};

TEST_F(TierFaults, AnyCallThatFailsLosesNothing) {
  constexpr std::uint64_t kEnd = vellum::test::kSanitizer ? 8 : 200;
  int failures = 0;
  for (const Call call : {Call::open, Call::create, Call::write, Call::sync, Call::truncate,
                          Call::rename, Call::unlink, Call::mkdir, Call::sync_dir}) {
    for (std::uint64_t nth = 1; nth < kEnd; nth += 1 + nth / 2) {
      make(3, 30);
      remove("s0");
      fs.reset_counts();
      fs.fail_nth(call, nth, Errc::no_space);
      try {
        add_archive();
        add_cache();
        move(true);
        apply();
        move(false);
        remove_tier(*fresh(), cache);
        remove_tier(*fresh(), archive);
      } catch (const Error&) {
        ++failures;
      }
      const bool reached = fs.seen(call) >= nth;
      fs.heal();
      expect_all();
      gc();
      move(false);
      EXPECT_EQ(count_packs(fs, archive), 0u);
      expect_all();
      std::filesystem::remove_all(store->path());
      std::filesystem::remove_all(archive);
      std::filesystem::remove_all(cache);
      if (!reached) break;
    }
  }
  EXPECT_GT(failures, vellum::test::rounds(20, 8));
}

// Moves, copies and gc; writers and readers in other processes; some are killed.
TEST(TierBeside, MoversWritersReadersAndGc) {
  const TempDirectory dir;
  base::Fs& fs = base::posix_fs();
  const std::string path = dir.path("s"), archive = dir.path("archive"), cache = dir.path("cache");
  std::mt19937_64 random(5);
  const Contents contents = make_store(fs, path, random);
  const auto open = [&] { return StoreDirectory::open(fs, path); };
  add_tier(*open(), TierKind::archive, archive, 0);
  add_tier(*open(), TierKind::cache, cache, 0);
  const vellum::test::Shared<std::atomic<bool>> stop;
  std::vector<Child> children;
  children.push_back(start_child([&] {
    const auto store = open();
    std::mt19937_64 dice(1);
    auto writer = BranchWriter::open(*store, "main");
    Model model(kTierCrashPages);
    model.bytes = contents.at("main");
    while (!*stop) {
      for (int n = 0; n < 16; ++n) fill_text(model, dice() % kTierCrashPages, dice);
      commit(*writer, model, true);
      ::usleep(2000);
    }
  }));
  for (unsigned seed = 1; seed <= 2; ++seed) {
    children.push_back(start_child([&, seed] {
      const auto store = open();
      std::mt19937_64 dice(seed);
      while (!*stop) {
        const std::string name = "s" + std::to_string(dice() % 4);
        const auto kept = resolve_kept(seed == 1 ? *store : *open(), name);
        const auto again = seed == 1 ? store : open();
        const auto source = PageSource::open(*again, kept.version.version, {}, name);
        std::vector<std::byte> bytes(kTierCrashPages * kPageBytes);
        source->read(0, kTierCrashPages, bytes.data());
        vellum::test::require(bytes == contents.at(name), name + " is as it was");
      }
    }));
  }
  children.push_back(start_child([&] {
    while (!*stop) {
      try {
        collect_garbage(*open(), false, nullptr, 1);
      } catch (const Error& e) {
        vellum::test::require(e.code() == Errc::busy, e.what());
      }
      ::usleep(5000);
    }
  }));
  std::uint64_t moved = 0, killed = 0;
  // Waits until enough packs were moved and processes killed. A child that has ended has failed.
  const int rounds = vellum::test::rounds(30, 6);
  const auto runs = [](const Child& child) { return child.running(); };
  for (int round = 0; (round < rounds || moved <= 10 || killed == 0) &&
                      std::all_of(children.begin(), children.end(), runs);
       ++round) {
    const auto turn = [&] {
      try {
        moved += move_packs(*open(), {round % 2 == 0, {}, 0}, nullptr).packs_moved;
        if (round % 3 == 0) apply_tiers(*open(), false, nullptr);
      } catch (const Error& e) {
        vellum::test::require(e.code() == Errc::busy, e.what());
      }
    };
    if (round % 4 != 3) {
      turn();
      continue;
    }
    Child child = start_child(turn);
    ::usleep(static_cast<useconds_t>(random() % 8000));
    child.kill(SIGKILL);
    const auto end = child.wait();
    EXPECT_TRUE(end.died_by(SIGKILL) || end.exited_with(0)) << testing::PrintToString(end);
    killed += end.died_by(SIGKILL) ? 1 : 0;
  }
  *stop = true;
  for (Child& child : children) EXPECT_CHILD_EXIT(child.wait(), 0);
  std::printf("  %llu packs moved, %llu movers killed\n", static_cast<unsigned long long>(moved),
              static_cast<unsigned long long>(killed));
  EXPECT_GT(moved, 10u);
  EXPECT_GT(killed, 0u);
  const auto expect_snapshots = [&] {
    for (int i = 0; i < 4; ++i) {
      const std::string name = "s" + std::to_string(i);
      expect_same(*open_version(*open(), name), contents.at(name));
    }
    expect_no_damage(*open());
  };
  expect_snapshots();
  move_packs(*open(), {false, {}, 0}, nullptr);
  remove_tier(*open(), archive);
  std::filesystem::remove_all(cache);
  expect_snapshots();
}

}  // namespace
}  // namespace vellum::store::test
