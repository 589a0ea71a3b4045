// Groups over the ranks of MPI: versions, errors on one rank, different numbers of ranks, two jobs.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vellum/group.hpp>
#include <vellum/store.hpp>

#include "group/mpi/launch_lib.hpp"
#include "support/disk/small_disk.hpp"

namespace vellum::test {
namespace {

class GroupTest : public MpiTest {
 protected:
  JobPlace place_{GetParam()};

  void expect_made(const JobEnd& end, std::uint64_t steps) {
    EXPECT_TRUE(end.succeeded()) << testing::PrintToString(end);
    EXPECT_EQ(last_number(end.output, "made"), steps) << testing::PrintToString(end);
  }
  // The stores have no unneeded snapshots.
  void expect_tidy(std::uint32_t partitions) {
    std::size_t versions = 0;
    for (const auto& info : group_versions(place_.records())) {
      versions += info.name.empty() && !info.is_repeated ? 1 : 0;
      versions += info.name.empty() ? 0 : 1;
    }
    for (std::uint32_t p = 0; p < partitions; ++p) {
      const auto all = Store::open(place_.store(p)).versions();
      EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const auto& v) { return !v.is_branch; }),
                versions)
          << "partition " << p;
    }
  }
};

TEST_P(GroupTest, AJobContinuesFromTheLastVersion) {
  expect_made(place_.run(kRanks, "work", {"7"}), 7);
  EXPECT_EQ(place_.steps(kRanks), 7u);
  const JobEnd second = place_.run(kRanks, "work", {"4"});
  EXPECT_EQ(last_number(second.output, "found"), 7u);
  expect_made(second, 11);
  EXPECT_EQ(place_.steps(kRanks), 11u);
  expect_tidy(kRanks);
  EXPECT_TRUE(verify_group(place_.records(), true).problems.empty());

  const auto versions = group_versions(place_.records());
  std::vector<std::string> names;
  for (const auto& info : versions) {
    if (!info.name.empty()) names.push_back(info.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"step-5", "step-10"}));
  EXPECT_EQ(versions.back().epoch, 2u);
}

// Jobs of two, three, six ranks and one rank open a group of four partitions.
TEST_P(GroupTest, AnyNumberOfRanksOpensIt) {
  expect_made(place_.run(kRanks, "work", {"3"}), 3);
  std::uint64_t steps = 3;
  for (const int ranks : {2, 3, 6, 1}) {
    steps += 2;
    expect_made(place_.run(ranks, "work", {"2"}), steps);
    EXPECT_EQ(place_.steps(kRanks), steps) << ranks << " ranks";
  }
}

TEST_P(GroupTest, AFullDiskOnOneRankIsAnErrorOnAll) {
  const SmallDisk disk(6u << 20);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  std::filesystem::create_directory_symlink(disk / "", place_.store(2));
  expect_made(place_.run(kRanks, "full_disk", {std::to_string(16u << 20)}), 2);
}

TEST_P(GroupTest, AVersionWaitsForASlowRank) {
  expect_made(place_.run(kRanks, "slow"), 3);
  EXPECT_EQ(place_.steps(kRanks), 3u);
}

TEST_P(GroupTest, ErrorsOnOneRankAreErrorsOnAll) {
  expect_made(place_.run(kRanks, "errors"), 2);
  EXPECT_EQ(place_.steps(kRanks), 2u);
}

TEST_P(GroupTest, AsynchronousVersionsHaveTheMemoryOfTheCall) {
  expect_made(place_.run(2, "asynchronous"), 3);
}

TEST_P(GroupTest, AJobOpensAnOlderVersion) {
  expect_made(place_.run(kRanks, "work", {"7"}), 7);
  expect_made(place_.run(kRanks, "go_back", {"step-5", "5"}), 6);
  EXPECT_EQ(place_.steps(kRanks), 6u);
  expect_made(place_.run(kRanks, "work", {"1"}), 7);
  expect_tidy(kRanks);
}

TEST_P(GroupTest, ASecondJobIsRefused) {
  Child first = place_.start(kRanks, "wait", {place_.file("go")});
  while (first.running() && last_number(place_.output(), "open") == 0) usleep(10'000);
  const std::string output = place_.file("output"), errors = place_.file("errors");
  std::filesystem::rename(output, output + "-1");
  std::filesystem::rename(errors, errors + "-1");
  const JobEnd second = place_.run(kRanks, "work", {"1"});
  EXPECT_FALSE(second.succeeded());
  EXPECT_NE(second.errors.find("another job has the group open"), std::string::npos)
      << testing::PrintToString(second);
  EXPECT_EQ(second.output.find("made"), std::string::npos);
  std::ofstream(place_.file("go")) << "go";
  EXPECT_EQ(place_.wait(first).status, 0);
  EXPECT_EQ(place_.steps(kRanks), 1u);
}

TEST_P(GroupTest, AProgramInCUsesAGroup) {
  const JobEnd end = place_.run_c(2);
  EXPECT_TRUE(end.succeeded()) << testing::PrintToString(end);
}

// The directory of records and the stores next to it are moved.
TEST_P(GroupTest, AMovedGroupOpens) {
  expect_made(place_.run(2, "work", {"2"}), 2);
  const std::string to = place_.file("moved");
  std::filesystem::create_directory(to);
  for (const char* name : {"records", "store-0", "store-1"}) {
    std::filesystem::rename(place_.file(name), to + "/" + name);
  }
  EXPECT_EQ(GroupVersion::open(to + "/records").partition(1).store, to + "/records/../store-1");
  const Region region = GroupVersion::open(to + "/records").open_partition(1);
  EXPECT_EQ(region.root<const std::uint64_t>(), 2u);
}

VELLUM_EACH_MPI(GroupTest);

}  // namespace
}  // namespace vellum::test
