// Power cuts on real file systems: a workload runs on one whose medium is recorded; each state that
// a cut could leave is mounted, recovered by that file system, and checked.
//
// tools/power-cut.sh runs the long form with VELLUM_POWER_IMAGES, the images for each workload on
// each file system, and VELLUM_POWER_SEED.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "crash/script_lib.hpp"
#include "power/harness_lib.hpp"
#include "power/sync_seam_lib.hpp"

namespace vellum::power {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

bool is_long() { return std::getenv("VELLUM_POWER_IMAGES") != nullptr; }
// For the long run, or for the short one.
std::uint64_t many(std::uint64_t long_run, std::uint64_t short_run) {
  return is_long() ? long_run : short_run;
}

class PowerCut : public testing::TestWithParam<FileSystem> {
 protected:
  void SetUp() override {
    const std::string reason = why_not(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
    static const bool is_private = make_mounts_private();
    if (!is_private) GTEST_SKIP() << "no mount namespace of its own";
  }

  static std::uint64_t seed() { return from_environment("VELLUM_POWER_SEED", 0); }
  static Effort effort() {
    Effort out;
    out.images = from_environment("VELLUM_POWER_IMAGES", 15);
    out.seed = seed();
    out.talks = is_long();
    return out;
  }

  static void expect_whole(const std::unique_ptr<Workload>& workload) {
    const Outcome outcome = cut_power(GetParam(), *workload, effort());
    fmt::print("power: {} on {}: {} writes, {} flushes, {} images, {} unmounted, {} violations\n",
               workload->name(), GetParam().name, outcome.writes, outcome.flushes, outcome.images,
               outcome.unmounted, outcome.violations);
    std::fflush(stdout);  // tools/power-cut.sh counts as it goes
    EXPECT_EQ(0U, outcome.unmounted);
    EXPECT_EQ(0U, outcome.violations);
    for (const std::string& text : outcome.first_problems) ADD_FAILURE() << text;
  }
};

// Plants a fault and expects an image to show it.
class PowerFault : public PowerCut {
 protected:
  static void expect_caught(const std::unique_ptr<Workload>& workload) {
    Effort wanted = effort();
    wanted.images = 120;
    wanted.until_violation = true;
    const Outcome outcome = cut_power(GetParam(), *workload, wanted);
    EXPECT_EQ(0U, outcome.unmounted);
    ASSERT_NE(0U, outcome.violations) << "not caught by " << outcome.images << " images";
    fmt::print("power: fault in {} on {}: caught by image {}: {}\n", workload->name(),
               GetParam().name, outcome.images, outcome.first_problems.front());
  }
};

bool ends_with(const std::string& path, const char* end) { return path.ends_with(end); }

// The seeds have the simulator's flavours in turn.
TEST_P(PowerCut, Store) { expect_whole(store_workload(seed(), many(150, 25))); }

TEST_P(PowerCut, StoreThatRepeatsContent) {
  expect_whole(store_workload(crash::seed_of_repeats(seed()), many(20, 3)));
}

TEST_P(PowerCut, Tiers) { expect_whole(tiers_workload(many(8, 2))); }

TEST_P(PowerCut, AtomicFile) { expect_whole(atomic_file_workload(seed(), many(200, 40))); }

TEST_P(PowerCut, RunUnderLmdb) { expect_whole(run_workload(seed(), many(150, 20))); }

TEST_P(PowerCut, ControlSqlite) { expect_whole(sqlite_workload(seed(), many(200, 40))); }

TEST_P(PowerCut, ControlLmdb) { expect_whole(lmdb_workload(seed(), many(200, 40))); }

TEST_P(PowerFault, CatchesACommitWithoutItsSync) {
  const SkippedSyncs skipped([](const std::string& path) { return ends_with(path, "/journal"); });
  expect_caught(store_workload(0, 25));
  EXPECT_NE(0U, SkippedSyncs::count());
}

TEST_P(PowerFault, CatchesAPackWithoutItsSync) {
  const SkippedSyncs skipped([](const std::string& path) { return ends_with(path, ".pack"); });
  expect_caught(store_workload(1, 25));
  EXPECT_NE(0U, SkippedSyncs::count());
}

TEST_P(PowerFault, CatchesASnapshotWithoutTheSyncOfItsDirectory) {
  const SkippedSyncs skipped([](const std::string& path) { return ends_with(path, "/snapshots"); });
  expect_caught(store_workload(4, 40));  // flavour `names`
  EXPECT_NE(0U, SkippedSyncs::count());
}

TEST_P(PowerFault, CatchesAnAtomicFileWithoutItsSync) {
  const SkippedSyncs skipped(
      [](const std::string& path) { return ends_with(path, ".vellum-journal"); });
  expect_caught(atomic_file_workload(0, 40));
  EXPECT_NE(0U, SkippedSyncs::count());
}

TEST_P(PowerFault, CatchesSqliteWithoutSyncs) {
  const SkippedSyncs skipped([](const std::string& path) { return ends_with(path, "-wal"); });
  expect_caught(sqlite_workload(0, 40));
  EXPECT_NE(0U, SkippedSyncs::count());
}

TEST_P(PowerFault, CatchesLmdbWithoutSyncs) { expect_caught(lmdb_workload(0, 40, false)); }

std::string name_of(const testing::TestParamInfo<FileSystem>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(On, PowerCut, testing::ValuesIn(file_systems()), name_of);

// Under data=journal a sync of any file makes all earlier writes durable, which hides some of the
// faults.
std::vector<FileSystem> systems_with_faults() {
  std::vector<FileSystem> out = file_systems();
  std::erase_if(out, [](const FileSystem& system) {
    return std::string(system.mount_as.options) == "data=journal";
  });
  return out;
}
INSTANTIATE_TEST_SUITE_P(On, PowerFault, testing::ValuesIn(systems_with_faults()), name_of);

}  // namespace
}  // namespace vellum::power
