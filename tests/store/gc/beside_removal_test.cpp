// A version is removed while another process reads it: it is missing, and nothing is corrupted.
#include <chrono>
#include <filesystem>
#include <future>

#include "store/branch/changed_branch.hpp"
#include "store/check/check.hpp"
#include "store/snapshots_fixture.hpp"
#include "support/disk/hook_fs.hpp"

namespace vellum::store::test {
namespace {

namespace stdfs = std::filesystem;
using vellum::test::HookFs;

class BesideRemoval : public SnapshotsTest {
 protected:
  void make(const std::string& name) {
    const auto writer = create(small_options(), 32, name);
    Model model(32);
    std::mt19937_64 random(1);
    for (const char* snapshot : {"s1", "s2"}) {
      model.fill(3, random);
      commit(*writer, model, true);
      name_head(*writer, model, snapshot);
    }
    store->create_branch_at("other", read_snapshot(*store, "s1").version, "s1");
  }
  std::string path() const { return store->path(); }
  // As soon as the directory is listed, one of its entries is removed, before it is opened.
  void remove_when_listed(HookFs& hooked, const std::string& directory,
                          const std::function<void(StoreDirectory&)>& remove) {
    hooked.hooks.after_list = [this, directory, remove,
                               done = false](const std::string& p) mutable {
      if (done || !p.ends_with(directory)) return;
      done = true;
      remove(*StoreDirectory::open(base::posix_fs(), path()));
    };
  }
};

struct Look {
  const char* what;
  std::function<void(StoreDirectory&)> look;
};
struct Removal {
  const char* what;
  const char* directory;
  std::function<void(StoreDirectory&)> remove;
};

TEST_F(BesideRemoval, WhoeverLooksFindsNoDamage) {
  const std::vector<Look> looks = {
      {"verify",
       [](StoreDirectory& s) {
         for (const auto& damage : verify_store(s, true, nullptr).damages) {
           ADD_FAILURE() << damage.object << ": " << damage.reason;
         }
       }},
      {"stat", [](StoreDirectory& s) { stat_store(s); }},
      {"gc", [](StoreDirectory& s) { collect_garbage(s, false, nullptr); }},
      {"gc that only looks", [](StoreDirectory& s) { collect_garbage(s, true, nullptr); }},
      {"repair that only looks",
       [](StoreDirectory& s) {
         for (const auto& lost : repair_store(s.fs(), s.path(), std::nullopt, nullptr).lost) {
           ADD_FAILURE() << lost.name << ": " << lost.reason;
         }
       }},
  };
  const std::vector<Removal> removals = {
      {"snapshot", "/snapshots", [](StoreDirectory& s) { s.remove_snapshot("s2"); }},
      {"branch", "/branches", [](StoreDirectory& s) { s.remove_branch("other"); }},
  };
  int number = 0;
  for (const Look& look : looks) {
    for (const Removal& removal : removals) {
      SCOPED_TRACE(std::string(look.what) + ", " + removal.what);
      make("store" + std::to_string(number++));
      HookFs hooked(base::posix_fs());
      const auto core = StoreDirectory::open(hooked, path());
      remove_when_listed(hooked, removal.directory, removal.remove);
      EXPECT_NO_THROW(look.look(*core));
      expect_no_damage(*StoreDirectory::open(fs, path()));
    }
  }
}

// Between a gc's look at the list of branches and at their journals, a rename waits: the new name
// would not be in the list, and the old one would be gone.
TEST_F(BesideRemoval, AGcFindsABranchThatIsRenamedMeanwhile) {
  make("store");
  std::future<void> renamed;
  HookFs hooked(base::posix_fs());
  const auto core = StoreDirectory::open(hooked, path());
  hooked.hooks.after_list = [&](const std::string& p) {
    if (renamed.valid() || !p.ends_with("/branches")) return;
    renamed = std::async(std::launch::async, [this] {
      rename_branch(*StoreDirectory::open(base::posix_fs(), path()), "main", "new");
    });
    renamed.wait_for(std::chrono::milliseconds(300));  // enough for a rename that does not wait
  };
  collect_garbage(*core, false, nullptr);
  renamed.get();
  const auto after = StoreDirectory::open(fs, path());
  EXPECT_TRUE(has_branch(*after, "new"));
  EXPECT_FALSE(has_branch(*after, "main"));
  expect_no_damage(*after);
}

// The branch is removed and another of the same name is created, between finding the journal and
// locking it.
TEST_F(BesideRemoval, OfABranchThatIsMadeAnewMeanwhile) {
  make("store");
  std::unique_ptr<BranchWriter> newer;
  const auto second = StoreDirectory::open(base::posix_fs(), path());
  const auto exchange = [&](const std::string& file) {
    if (newer != nullptr || !file.ends_with("/other/journal")) return;
    // The test does this by hand: a process that removes a branch holds the lock of its name.
    const stdfs::path directory = path() + "/branches/other";
    stdfs::copy(directory, dir.path("newer"), stdfs::copy_options::recursive);
    stdfs::rename(directory, dir.path("older"));
    stdfs::rename(dir.path("newer"), directory);
    newer = BranchWriter::open(*second, "other");
  };
  HookFs hooked(base::posix_fs());
  const auto core = StoreDirectory::open(hooked, path());
  hooked.hooks.before_lock = exchange;
  error_text(Errc::busy, [&] { core->remove_branch("other"); });
  ASSERT_NE(newer, nullptr);
  EXPECT_TRUE(stdfs::exists(path() + "/branches/other/journal"));
  newer.reset();
  stdfs::remove_all(dir.path("older"));
  error_text(Errc::busy, [&] { BranchWriter::open(*core, "other"); });
  EXPECT_NE(newer, nullptr);
}

}  // namespace
}  // namespace vellum::store::test
