// Interrupted pushes, pulls and clones: a power cut at any change of store and remote, a kill at
// any call, a server error at any request.
#include <gtest/gtest.h>

#include "base/expect_error.hpp"
#include "remote/failing_objects.hpp"
#include "remote/holds.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/remote_fixture.hpp"
#include "support/disk/crash_images_lib.hpp"
#include "support/disk/forwarding_fs.hpp"
#include "support/disk/sim_fs_lib.hpp"

namespace vellum::remote::test {
namespace {

// A store at /s and a directory as its remote at /r, on one simulated disk.
constexpr const char* kStore = "/s";
constexpr const char* kRemote = "/r";
const std::string kUrl = "file:///r";

std::shared_ptr<ObjectStore> raw_remote_of(base::Fs& fs) {
  return std::make_shared<DirectoryEngine>(fs, kRemote);
}
// Opened, if it is encrypted.
std::shared_ptr<ObjectStore> remote_of(base::Fs& fs) {
  auto objects = raw_remote_of(fs);
  return are_objects_encrypted() ? unlock_remote(objects).objects : objects;
}

// Snapshots s0 and s1 are pushed; s2 and a head with a commit in the journal are not. Many small
// pushes before them have lists with bases.
struct Made {
  Contents before, after;  // of the remote, before and after the next push
};

Made make_before_push(base::Fs& fs) {
  Made out;
  const auto store = create_store(fs, kStore, remote_options());
  add_origin(*store, kUrl, raw_remote_of(fs));
  Line line(*store, "main", 11);
  line.begin();
  for (int i = 0; i < 20; ++i) {
    line.step("", 1);
    push_names(*store, {"main"}, remote_of(fs));
  }
  for (const char* name : {"s0", "s1"}) {
    line.step(name, 4);
    out.before[name] = line.bytes();
  }
  out.before["main"] = line.bytes();
  push_all(*store, remote_of(fs));
  out.after = out.before;
  line.step("s2", 4);
  out.after["s2"] = line.bytes();
  line.step("", 2, false);
  out.after["main"] = line.bytes();
  return out;
}

// The versions of a clone of the remote, which must be complete.
Contents cloned(base::Fs& fs, const Contents& like) {
  clone(fs, kUrl, "/clone", {}, nullptr, remote_of(fs));
  const auto store = StoreDirectory::open(fs, "/clone");
  Contents out;
  for (const auto& [name, bytes] : like) {
    if (!store::has_snapshot(*store, name) && !store::has_branch(*store, name)) continue;
    const auto source = store::test::open_version(*store, name);
    out[name].resize(source->region_bytes());
    source->read(0, out[name].size() / format::kPageBytes, out[name].data());
  }
  store::test::expect_no_damage(*store);
  return out;
}

bool has_list_on_base(base::Fs& fs, const std::string& name) {
  const auto objects = remote_of(fs);
  const Remote remote(*objects, unlock_remote(*objects).seal);
  return remote.newest_head().head.find(name)->list.base.size_bytes != 0;
}

void expect_before_or_after(base::Fs& fs, const Made& made, bool must_be_after) {
  const Contents there = cloned(fs, made.after);
  EXPECT_TRUE(there == made.after || (!must_be_after && there == made.before));
}

TEST(RemoteCrash, APowerCutAtAnyChangeOfAPushLosesNothing) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  fs.start_log();
  fs.allow_states(0, 1);
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  fs.allow_states(1, 1);
  fs.stop_log();
  std::uint64_t images = 0;
  sim::CrashImages(fs, {3, 6, 3, 4}, 5)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        if (testing::Test::HasFailure()) return;
        {
          sim::SimFs disk(image);
          expect_before_or_after(disk, made, low == 1);
        }
        if (++images % 8 != 0) return;
        // The store is intact, and pushes the missing versions.
        sim::SimFs disk(image);
        const auto store = StoreDirectory::open(disk, kStore);
        expect_contents(*store, made.after);
        push_all(*store, remote_of(disk));
        EXPECT_EQ(cloned(disk, made.after), made.after);
      });
  std::printf("  %llu images\n", static_cast<unsigned long long>(images));
  EXPECT_GT(images, 100u);
}

void pull_in_place(base::Fs& fs, const std::string& path, bool packs) {
  RemoteOptions options;
  options.cache_directory = "";
  const auto store = open_store(fs, path, options, remote_of(fs));
  Session session(*store, "origin", remote_of(fs));
  pull(session, {{}, packs}, nullptr);
}

// The copy has s0 and s1 before, and all versions after the pull has returned.
void cut_power_in_pull(bool lazy) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  clone(fs, kUrl, "/copy", {{}, lazy}, nullptr, remote_of(fs));
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const Contents before{{"s0", made.before.at("s0")}, {"s1", made.before.at("s1")}};
  fs.start_log();
  fs.allow_states(0, 1);
  pull_in_place(fs, "/copy", lazy);
  fs.allow_states(1, 1);
  fs.stop_log();
  std::uint64_t images = 0;
  sim::CrashImages(fs, {2, 2, 3, 3}, 5)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        if (testing::Test::HasFailure() || (++images % 3 != 0 && low == 0)) return;
        sim::SimFs disk(image);
        RemoteOptions options;
        options.cache_directory = "";
        const auto store = open_store(disk, "/copy", options, remote_of(disk));
        expect_contents(*store, low == 1 ? made.after : before);
        for (const std::string& name : store::snapshot_names(*store)) {
          expect_contents(*store, {{name, made.after.at(name)}});
        }
      });
  std::printf("  %llu images\n", static_cast<unsigned long long>(images));
  EXPECT_GT(images, 50u);
}

TEST(RemoteCrash, APowerCutAtAnyChangeOfAPullLosesNothing) { cut_power_in_pull(false); }
TEST(RemoteCrash, APowerCutWhilePacksAreFetchedLosesNothing) { cut_power_in_pull(true); }

// The renames of a killed process that are not synced.
class UnsyncedNames final : public vellum::test::ForwardingFs {
 public:
  using ForwardingFs::ForwardingFs;
  void sync_directory(const std::string&) override {}
};

// All images of a disk after `work` has returned; `check` gets the late ones.
void cut_power_after(sim::SimFs& fs, const std::function<void()>& work,
                     const std::function<void(base::Fs& disk)>& check) {
  fs.start_log();
  fs.allow_states(0, 1);
  work();
  fs.allow_states(1, 1);
  fs.stop_log();
  std::uint64_t images = 0;
  sim::CrashImages(fs, {3, 6, 3, 4}, 5)
      .for_each([&](const sim::Disk& image, std::size_t low, std::size_t) {
        if (low != 1 || testing::Test::HasFailure()) return;
        sim::SimFs disk(image);
        check(disk);
        ++images;
      });
  EXPECT_GT(images, 0u);
}

TEST(RemoteCrash, APushReliesOnNothingThatAKilledOneHasNotSynced) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  sim::SimFs other(fs.disk());
  push_all(*StoreDirectory::open(other, kStore), remote_of(other));
  cut_power_after(
      fs,
      [&] {
        UnsyncedNames unsynced(fs);
        DirectoryEngine left(unsynced, kRemote);
        const auto there = remote_of(other);
        for (const char* prefix : {kPiecePrefix, kListPrefix}) {
          for (const ObjectInfo& object : there->list(prefix, SIZE_MAX)) {
            left.put_if_absent(object.key, there->get(object.key, object.size_bytes));
          }
        }
        push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
      },
      [&](base::Fs& disk) { expect_before_or_after(disk, made, true); });
}

// The name of a killed push's head may not be durable. The next push, which finds all objects,
// makes it durable.
TEST(RemoteCrash, APushThatFindsAllObjectsMakesThemDurable) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  cut_power_after(
      fs,
      [&] {
        {
          UnsyncedNames unsynced(fs);
          push_all(*StoreDirectory::open(fs, kStore),
                   std::make_unique<DirectoryEngine>(unsynced, kRemote));
        }
        EXPECT_EQ(push_all(*StoreDirectory::open(fs, kStore), remote_of(fs)).objects_uploaded, 0u);
      },
      [&](base::Fs& disk) { expect_before_or_after(disk, made, true); });
}

TEST(RemoteCrash, ACloneIsDurableAlsoWhereAKilledOneHasBegunIt) {
  for (const std::uint64_t nth : {2u, 8u, 10u, 12u, 1000u}) {
    SCOPED_TRACE(nth);
    sim::SimFs fs;
    const Made made = make_before_push(fs);
    // False: the work has fewer calls.
    const auto is_killed = [&](base::Fs& disk) {
      auto failing = std::make_shared<FailingObjects>(remote_of(fs), nth, false);
      try {
        clone(disk, kUrl, "/clone", {}, nullptr, std::move(failing));
      } catch (const Error&) {
        return true;
      }
      return false;
    };
    sim::SimFs trial(fs.disk());
    const bool begins = is_killed(trial);
    cut_power_after(
        fs,
        [&] {
          UnsyncedNames unsynced(fs);
          EXPECT_EQ(begins && !is_killed(unsynced), false);
          clone(fs, kUrl, "/clone", {}, nullptr, remote_of(fs));
        },
        [&](base::Fs& disk) {
          ASSERT_TRUE(disk.exists("/clone/vellum.store"));
          expect_contents(*StoreDirectory::open(disk, "/clone"), made.before);
        });
  }
}

// Runs `work` on copies of a disk, each killed at a later call, and then `check` on the copy.
template <typename Work, typename Check>
std::uint64_t kill_at_each_call(const sim::Disk& start, const Work& work, const Check& check) {
  for (std::uint64_t nth = 1;; ++nth) {
    sim::SimFs fs(start);
    fs.cut_power_at(nth);
    bool was_killed = false;
    try {
      work(fs);
    } catch (const sim::PowerCut&) {
      was_killed = true;
    } catch (const Error&) {
      was_killed = true;  // the cut, rethrown from a worker thread
    }
    sim::SimFs left(fs.disk());
    check(left, was_killed);
    if (!was_killed || testing::Test::HasFailure()) return nth;
  }
}

TEST(RemoteCrash, AKillAtAnyCallOfAPushLosesNothing) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  const std::uint64_t calls = kill_at_each_call(
      fs.disk(),
      [](base::Fs& disk) { push_all(*StoreDirectory::open(disk, kStore), remote_of(disk)); },
      [&](sim::SimFs& left, bool was_killed) {
        sim::SimFs other(left.disk());
        expect_before_or_after(other, made, !was_killed);
        push_all(*StoreDirectory::open(left, kStore), remote_of(left));
        EXPECT_EQ(cloned(left, made.after), made.after);
        EXPECT_TRUE(has_list_on_base(left, "s2"));
      });
  EXPECT_GT(calls, 20u);
}

TEST(RemoteCrash, AKillAtAnyCallOfACloneLeavesAResumableOne) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const std::uint64_t calls = kill_at_each_call(
      fs.disk(), [](base::Fs& disk) { clone(disk, kUrl, "/clone", {}, nullptr, remote_of(disk)); },
      [&](sim::SimFs& left, bool was_killed) {
        if (was_killed && !left.exists("/clone")) {
          EXPECT_EQ(cloned(left, made.after), made.after);
        } else {
          expect_contents(*StoreDirectory::open(left, "/clone"), made.after);
        }
      });
  EXPECT_GT(calls, 50u);
}

// A snapshot and a branch whose recorded working sets have pieces of their own.
Contents make_with_sets(base::Fs& fs, const Ranges& used) {
  constexpr format::PageNumber kPages = 256;
  const auto store = create_store(fs, kStore, remote_options());
  add_origin(*store, kUrl, raw_remote_of(fs));
  store->create_branch("main", kPages * format::kPageBytes, 0);
  Model model(kPages);
  std::mt19937_64 random{3};
  for (format::PageNumber page = 0; page < kPages; ++page) {
    for (std::size_t at = 0; at < format::kPageBytes; at += 8) model.store64(page, at, random());
  }
  {
    const auto writer = BranchWriter::open(*store, "main");
    commit(*writer, model, true);
    writer->publish_snapshot("s0", "");
  }
  for (const char* name : {"main", "s0"}) record_set(*store, name, used);
  return {{"main", model.bytes}, {"s0", model.bytes}};
}

void expect_pieces_of_sets(base::Fs& fs) {
  const auto objects = remote_of(fs);
  const Remote remote(*objects, unlock_remote(*objects).seal);
  EXPECT_TRUE(verify_remote(remote, true, nullptr).damages.empty());
  for (const RemoteVersion& name : remote.newest_head().head.versions) {
    EXPECT_FALSE(remote.pieces_of(name.list).in_use.pieces.empty()) << name.ref.name;
  }
}

TEST(RemoteCrash, AKillAtAnyCallThatPushesOrPullsAWorkingSetLosesNothing) {
  const Ranges used{{128, 64}, {0, 48}};
  sim::SimFs fs;
  const Contents made = make_with_sets(fs, used);
  const auto send = [](base::Fs& disk) {
    push_all(*StoreDirectory::open(disk, kStore), remote_of(disk));
  };
  const auto bring = [](base::Fs& disk) {
    clone(disk, kUrl, "/clone", {}, nullptr, remote_of(disk));
  };
  const std::uint64_t calls = kill_at_each_call(
      fs.disk(),
      [&](base::Fs& disk) {
        send(disk);
        bring(disk);
      },
      [&](sim::SimFs& left, bool was_killed) {
        send(left);
        expect_pieces_of_sets(left);
        if (!left.exists("/clone")) bring(left);
        const auto copy = StoreDirectory::open(left, "/clone");
        expect_contents(*copy, made);
        for (const auto& [name, bytes] : made) {
          const Ranges there = recorded_set(*copy, name);
          // Only a hint: a resumed clone does not restore it.
          EXPECT_TRUE(there == used || (was_killed && there.empty())) << name;
        }
      });
  EXPECT_GT(calls, 70u);
}

// A lazy clone's packs are read without copies of pieces.
std::shared_ptr<StoreDirectory> open_lazy(base::Fs& fs, const std::string& path) {
  RemoteOptions options;
  options.cache_directory = "";
  return open_store(fs, path, options, remote_of(fs));
}

TEST(RemoteCrash, AKillAtAnyCallOfALazyCloneLeavesAResumableOne) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const auto clone_in = [](base::Fs& disk, bool lazy) {
    clone(disk, kUrl, "/clone", {{}, lazy}, nullptr, remote_of(disk));
  };
  const std::uint64_t calls = kill_at_each_call(
      fs.disk(), [&](base::Fs& disk) { clone_in(disk, true); },
      [&](sim::SimFs& left, bool) {
        for (const bool lazy : {true, false}) {
          sim::SimFs disk(left.disk());
          if (!disk.exists("/clone")) clone_in(disk, lazy);
          expect_contents(*open_lazy(disk, "/clone"), made.after);
        }
      });
  EXPECT_GT(calls, 50u);
}

TEST(RemoteCrash, AKillAtAnyCallThatFetchesPacksLosesNothing) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  clone(fs, kUrl, "/copy", {{}, true}, nullptr, remote_of(fs));
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const auto bring = [](base::Fs& disk) {
    const auto store = open_lazy(disk, "/copy");
    Session session(*store, "origin", remote_of(disk));
    pull(session, {{}, true}, nullptr);
    release_holds(session);
  };
  const std::uint64_t calls =
      kill_at_each_call(fs.disk(), bring, [&](sim::SimFs& left, bool was_killed) {
        if (was_killed) {
          const auto store = open_lazy(left, "/copy");
          expect_contents(*store, {{"s0", made.before.at("s0")}, {"s1", made.before.at("s1")}});
          store::collect_garbage(*store, false, nullptr);
          bring(left);
        }
        EXPECT_FALSE(left.exists("/r/holds") && !left.list("/r/holds").empty());
        expect_contents(*StoreDirectory::open(left, "/copy"), made.after);
      });
  EXPECT_GT(calls, 50u);
}

TEST(RemoteCrash, AKillAtAnyCallOfAPullLosesNothing) {
  sim::SimFs fs;
  const Made made = make_before_push(fs);
  clone(fs, kUrl, "/copy", {}, nullptr, remote_of(fs));
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const std::uint64_t calls = kill_at_each_call(
      fs.disk(),
      [](base::Fs& disk) { pull_names(*StoreDirectory::open(disk, "/copy"), {}, remote_of(disk)); },
      [&](sim::SimFs& left, bool) {
        const auto store = StoreDirectory::open(left, "/copy");
        expect_contents(*store, {{"s0", made.before.at("s0")}, {"s1", made.before.at("s1")}});
        pull_names(*store, {}, remote_of(left));
        expect_contents(*store, made.after);
      });
  EXPECT_GT(calls, 20u);
}

TEST(RemoteCrash, AKillAtAnyCallOfARemoteGcLosesNothing) {
  sim::SimFs fs;
  Made made = make_before_push(fs);
  push_all(*StoreDirectory::open(fs, kStore), remote_of(fs));
  const auto work = [](base::Fs& disk) {
    const auto objects = remote_of(disk);
    const Remote remote(*objects, unlock_remote(*objects).seal);
    forget_names(remote, {"s1"});
    collect_remote(remote, false, nullptr);
  };
  Contents without = made.after;
  without.erase("s1");
  const std::uint64_t calls =
      kill_at_each_call(fs.disk(), work, [&](sim::SimFs& left, bool was_killed) {
        sim::SimFs other(left.disk());
        const Contents there = cloned(other, made.after);
        EXPECT_TRUE(there == without || (was_killed && there == made.after));
        const auto objects = remote_of(left);
        collect_remote(Remote(*objects, unlock_remote(*objects).seal), false, nullptr);
        EXPECT_EQ(cloned(left, made.after), there);
      });
  EXPECT_GT(calls, 15u);
}

TEST(RemoteCrash, AServerThatFailsAtAnyRequestDoesNoHarm) {
  sim::SimFs start;
  const Made made = make_before_push(start);
  for (const bool after : {false, true}) {
    for (std::uint64_t nth = 1;; ++nth) {
      sim::SimFs fs(start.disk());
      const auto store = StoreDirectory::open(fs, kStore);
      bool failed = false;
      try {
        push_all(*store, std::make_unique<FailingObjects>(remote_of(fs), nth, after));
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::io) << e.what();
        failed = true;
      }
      {
        sim::SimFs other(fs.disk());
        expect_before_or_after(other, made, !failed);
      }
      push_all(*store, remote_of(fs));
      EXPECT_EQ(cloned(fs, made.after), made.after);
      if (!failed || HasFailure()) break;
      ASSERT_LT(nth, 1000u);
    }
  }
}

}  // namespace
}  // namespace vellum::remote::test
