// A branch and a snapshot of one name: the state after a kill in convert_to_branch(), or in an
// untrusted store. No region ever shows the bytes of the wrong one.
#include <signal.h>

#include <filesystem>

#include "region/api/store_impl.hpp"
#include "store/catalog/store_directory.hpp"
#include "support/child.hpp"
#include "support/disk/hook_fs.hpp"
#include "support/store_fixture.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kHalfStatePages = 2048;

class HalfState : public StoreTest {
 protected:
  RegionOptions tight() const {
    RegionOptions o = options();
    o.memory_limit_bytes = kMiB;
    return o;
  }
  static void fill(const Region& region, std::uint64_t value) {
    for (std::uint64_t page = 0; page < kHalfStatePages; ++page)
      word_at(region, page * kPage) = value + page;
  }
  static std::uint64_t wrong(const Region& region, std::uint64_t value) {
    std::uint64_t count = 0;
    for (std::uint64_t page = 0; page < kHalfStatePages; ++page) {
      count += word_at(region, page * kPage) != value + page;
    }
    return count;
  }
  void make(Store& store) const {
    Region region = store.create_region("main", kHalfStatePages * kPage, options());
    fill(region, 1000);
    region.snapshot("s");
  }
  // Four commits in less memory than they need: pages are evicted, and loaded again from the store.
  static void expect_right_after_commits(Region& region) {
    for (std::uint64_t round = 1; round <= 4; ++round) {
      fill(region, round * 1'000'000);
      region.commit();
      EXPECT_EQ(wrong(region, round * 1'000'000), 0u) << "commit " << round;
    }
  }
  void kill_in_convert(const char* name) const {
    EXPECT_CHILD_SIGNAL(run_child([&] {
                          HookFs fs(base::posix_fs());
                          fs.hooks.before_unlink = [](const std::string&) { raise(SIGKILL); };
                          store::StoreDirectory::open(fs, path())->convert_to_branch(name);
                        }),
                        SIGKILL);
  }
};

TEST_P(HalfState, AnInterruptedConversionIsCompletedByAWriter) {
  Store store = create();
  make(store);
  kill_in_convert("s");
  ASSERT_TRUE(std::filesystem::exists(path() + "/branches/s/journal"));
  ASSERT_TRUE(std::filesystem::exists(path() + "/snapshots/s.ref"));
  // Until then the name means the version that both hold.
  EXPECT_EQ(wrong(store.open_version("s", options()), 1000), 0u);
  Region region = store.open_region("s", tight());
  EXPECT_FALSE(std::filesystem::exists(path() + "/snapshots/s.ref"));
  EXPECT_EQ(wrong(region, 1000), 0u);
  expect_right_after_commits(region);
  region.close();
  EXPECT_TRUE(store.version("s").is_branch);
  EXPECT_EQ(wrong(store.open_version("s", options()), 4'000'000), 0u);
  EXPECT_TRUE(store.verify({.read_data = true}).damages.empty());
}

TEST_P(HalfState, AnInterruptedConversionIsCompletedByACall) {
  Store store = create();
  make(store);
  kill_in_convert("s");
  store.convert_to_branch("s");
  EXPECT_FALSE(std::filesystem::exists(path() + "/snapshots/s.ref"));
  EXPECT_TRUE(store.version("s").is_branch);
  EXPECT_EQ(wrong(store.open_version("s", options()), 1000), 0u);
}

// When the two differ, neither is removed, and no writer opens the branch.
TEST_P(HalfState, ASnapshotThatDiffersFromItsBranchIsAnError) {
  Store store = create();
  make(store);
  const std::string ref = path() + "/snapshots/s.ref", copy = directory_ / "s.ref";
  std::filesystem::copy_file(ref, copy);
  store.convert_to_branch("s");
  {
    Region region = store.open_region("s", options());
    fill(region, 5000);
    region.commit();
  }
  std::filesystem::copy_file(copy, ref);
  expect_error(Errc::corrupted, {path(), "'s'", "differ"},
               [&] { (void)store.open_region("s", options()); });
  EXPECT_TRUE(std::filesystem::exists(ref));
  store.remove_snapshot("s");
  EXPECT_EQ(wrong(store.open_region("s", options()), 5000), 0u);
}

// A region that is open follows its branch, whatever its name means meanwhile.
TEST_P(HalfState, AnInterruptedConversionKeepsOpenRegions) {
  Store store = create();
  make(store);
  const std::string ref = path() + "/snapshots/s.ref", copy = directory_ / "s.ref";
  std::filesystem::copy_file(ref, copy);
  store.convert_to_branch("s");
  Region region = store.open_region("s", tight());
  std::filesystem::copy_file(copy, ref);
  expect_right_after_commits(region);
}

VELLUM_BOTH_ENGINES(HalfState);

}  // namespace
}  // namespace vellum::test
