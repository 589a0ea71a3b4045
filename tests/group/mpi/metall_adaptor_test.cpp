// Metall's datastores over the ranks of MPI: the adaptor's interface, a failure on one rank, kills.
#include <signal.h>

#include <filesystem>
#include <random>

#include "group/mpi/launch_lib.hpp"
#include "support/disk/small_disk.hpp"

namespace vellum::test {
namespace {

class MetallAdaptorTest : public MpiTest {
 protected:
  void SetUp() override {
    if (GetParam().metall_ranks.empty()) GTEST_SKIP() << "Metall is not there";
  }
  std::string root() const { return place_.file("graph"); }
  Child start(const std::string& what, const std::vector<std::string>& more = {}) {
    std::vector<std::string> program = {GetParam().metall_ranks, what, root(),
                                        place_.records() + ".pids"};
    program.insert(program.end(), more.begin(), more.end());
    return place_.launch(kRanks, program);
  }
  JobEnd run(const std::string& what, const std::vector<std::string>& more = {}) {
    Child job = start(what, more);
    const JobEnd end = place_.wait(job);
    EXPECT_TRUE(end.succeeded()) << what << "\n" << testing::PrintToString(end);
    return end;
  }

  JobPlace place_{GetParam()};
};

TEST_P(MetallAdaptorTest, TheAdaptorHasTheInterfaceOfMetallsOwn) { run("interface"); }

TEST_P(MetallAdaptorTest, ACreationThatFailsOnOneRankIsNone) { run("failed_creation"); }

TEST_P(MetallAdaptorTest, AFullDiskOnOneRankLeavesNoVersionOnAny) {
  const SmallDisk disk(12u << 20);
  if (!disk.mounted()) GTEST_SKIP() << disk.reason();
  run("make");
  namespace fs = std::filesystem;
  const std::string subdir = root() + "/subdir-2";
  fs::copy(subdir, disk / "subdir", fs::copy_options::recursive);
  fs::remove_all(subdir);
  fs::create_directory_symlink(disk / "subdir", subdir);
  run("full_disk", {std::to_string(32u << 20)});
}

// A rank dies at any time, even rank 0: all continue from the last version or the one in progress.
TEST_P(MetallAdaptorTest, ARankDiesAtAnyMoment) {
  run("make");
  std::mt19937_64 random(5);
  std::uint64_t known = 1;
  for (int i = 0; i < 4 && !HasFailure(); ++i) {
    Child job = start("work", {"5000"});
    while (job.running() && place_.output().find("made") == std::string::npos) usleep(2'000);
    usleep(static_cast<useconds_t>(random() % 150'000));
    const auto pids = place_.processes(kRanks);
    ASSERT_EQ(pids.size(), kRanks);
    ::kill(pids[random() % kRanks], SIGKILL);
    const JobEnd end = place_.wait(job);
    place_.bury(kRanks);
    EXPECT_FALSE(end.succeeded());
    EXPECT_EQ(last_number(end.output, "found"), known);
    const std::uint64_t found = last_number(run("look").output, "found");
    EXPECT_GE(found, last_number(end.output, "made")) << testing::PrintToString(end);
    EXPECT_LE(found, last_number(end.output, "begun")) << testing::PrintToString(end);
    known = found;
  }
  EXPECT_GT(known, 4u);
}

VELLUM_EACH_MPI(MetallAdaptorTest);

}  // namespace
}  // namespace vellum::test
