// The next gc removes files of killed processes. Files that running processes use remain.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "store/branch/checkpointed_head.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/child.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::store::test {
namespace {

namespace stdfs = std::filesystem;
using vellum::test::HookFs;
using vellum::test::Hooks;
using vellum::test::run_child;

class Leftovers : public SnapshotsTest {
 protected:
  // Branch `main` has a snapshot, and a commit that is only in its journal.
  std::unique_ptr<BranchWriter> make(const std::string& name) {
    auto writer = create(small_options(), 32, name);
    Model model(32);
    std::mt19937_64 random(1);
    model.fill(3, random);
    commit(*writer, model, true);
    name_head(*writer, model, "s1");
    model.store64(5, 0, 1);
    commit(*writer, model, false);
    contents["main"] = model.bytes;
    return writer;
  }
  std::string path() const { return store->path(); }
  // Names of the files in the store's directories; for packs, only their number.
  std::set<std::string> entries() const {
    std::set<std::string> out;
    for (const char* directory : {"", "branches", "snapshots", "tmp"}) {
      for (const auto& e : stdfs::directory_iterator(path() + "/" + directory)) {
        out.insert(std::string(directory) + "/" + e.path().filename().string());
      }
    }
    out.erase("/gc.lock");
    out.erase("/gc.census");
    out.erase("/gc.space");
    return out;
  }
  void expect_like(const std::set<std::string>& before, const std::string& what) {
    EXPECT_EQ(entries(), before) << what;
    EXPECT_EQ(store->branch_names(), std::vector<std::string>{"main"}) << what;
    expect_all();
  }
};

void snapshot_live(StoreDirectory& s) {
  snapshot_live_branch(s, "main", claim_name(s, "live"), "");
}

// The process is killed before a call whose path contains this.
struct Death {
  const char* what;
  Hooks::Hook Hooks::* hook;
  const char* at;
  std::function<void(StoreDirectory&)> work;
  std::function<void(StoreDirectory&)> expect_done;
};

const std::vector<Death>& deaths() {
  const auto new_branch = [](StoreDirectory& s) { s.create_branch("b", 32 * kPageBytes, 0); };
  const auto snapshot = [](StoreDirectory& s) { s.create_snapshot("t", read_snapshot(s, "s1")); };
  const auto branch_is_there = [](StoreDirectory& s) { EXPECT_TRUE(has_branch(s, "b")); };
  const auto ref_is_there = [](StoreDirectory& s) { EXPECT_TRUE(has_snapshot(s, "t")); };
  const auto live_is_there = [](StoreDirectory& s) {
    EXPECT_TRUE(has_snapshot(s, "live"));
    EXPECT_EQ(s.branch_names(), std::vector<std::string>{"main"});
  };
  static const std::vector<Death> all = {
      {"a branch, without its journal", &Hooks::before_create, "/tmp/journal", new_branch,
       branch_is_there},
      {"a branch, its journal in tmp", &Hooks::before_write, "/tmp/journal", new_branch,
       branch_is_there},
      {"a branch, its journal written", &Hooks::before_rename, "/journal", new_branch,
       branch_is_there},
      {"a ref, empty", &Hooks::before_write, "/tmp/t.ref", snapshot, ref_is_there},
      {"a ref, written", &Hooks::before_rename, ".ref", snapshot, ref_is_there},
      {"a branch that is removed", &Hooks::before_unlink, "image",
       [](StoreDirectory& s) {
         s.create_branch("b", 32 * kPageBytes, 0);
         std::ofstream(s.branches_directory() + "/b/image") << "content";
         s.remove_branch("b");
       },
       [](StoreDirectory& s) { EXPECT_FALSE(stdfs::exists(s.branches_directory() + "/b")); }},
      {"a live snapshot, its staging branch created", &Hooks::before_lock, "/vellum-snapshot-",
       snapshot_live, live_is_there},
      {"a live snapshot, on a staging branch", &Hooks::before_create, "/tmp/live", snapshot_live,
       live_is_there},
      {"a live snapshot, its ref written", &Hooks::before_rename, ".ref", snapshot_live,
       live_is_there},
  };
  return all;
}

TEST_F(Leftovers, OfKillsGoWithGc) {
  int number = 0;
  for (const Death& death : deaths()) {
    SCOPED_TRACE(death.what);
    const auto writer = make("store" + std::to_string(number++));
    const auto before = entries();
    for (int again = 0; again < 2; ++again) {
      EXPECT_CHILD_SIGNAL(run_child([&] {
                            HookFs hooked(base::posix_fs());
                            hooked.hooks.*death.hook = [&](const std::string& p) {
                              if (contains(p, death.at)) raise(SIGKILL);
                            };
                            death.work(*StoreDirectory::open(hooked, path()));
                          }),
                          SIGKILL);
    }
    EXPECT_NE(entries(), before) << "nothing was left";
    gc();
    expect_like(before, death.what);
  }
}

// The same calls, with a gc in another process at each of these points.
TEST_F(Leftovers, WhatIsInTheMakingStays) {
  int number = 0;
  for (const Death& moment : deaths()) {
    SCOPED_TRACE(moment.what);
    const auto writer = make("store" + std::to_string(number++));
    HookFs hooked(base::posix_fs());
    const auto core = StoreDirectory::open(hooked, path());
    bool ran = false;
    hooked.hooks.*moment.hook = [&](const std::string& p) {
      if (ran || !contains(p, moment.at)) return;
      ran = true;
      gc();
    };
    EXPECT_NO_THROW(moment.work(*core));
    EXPECT_TRUE(ran);
    for (const std::string& name : snapshot_names(*core)) {
      if (name == "live") contents[name] = contents["main"];
      if (name == "t") contents[name] = contents["s1"];
    }
    gc();
    expect_all();
    moment.expect_done(*core);
  }
}

TEST_F(Leftovers, NobodyElseCanHaveTheNameOfABranchAside) {
  const auto writer = make("store");
  const std::string staging = "vellum-snapshot-0123456789abcdef";
  error_text(Errc::invalid_argument, [&] { store->create_branch(staging, kPageBytes, 0); });
  error_text(Errc::invalid_argument, [&] { writer->publish_snapshot(staging, ""); });
  store->create_branch("vellum-snapshot-0123456789abcde", kPageBytes, 0);
  store->create_branch("vellum-snapshot-0123456789abcdeg", kPageBytes, 0);
  gc();
  EXPECT_EQ(store->branch_names().size(), 3u);
}

}  // namespace
}  // namespace vellum::store::test
