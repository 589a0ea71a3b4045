// Versions that are also durable at a remote, a directory or a real S3 server: one process reads
// them by URL, a lost store is restored, and after kill -9 of any rank at any file call, the newest
// version there is complete.
#include <algorithm>
#include <filesystem>
#include <random>
#include <vellum/group.hpp>

#include "group/mpi/launch_lib.hpp"
#include "support/s3_url.hpp"

namespace vellum::test {
namespace {

namespace fs = std::filesystem;

class GroupRemoteTest : public MpiTest {
 protected:
  void SetUp() override { fs::create_directory(remote()); }
  std::string remote() const { return place_.file("remote"); }
  virtual std::string url() const { return "file://" + remote(); }

  JobEnd run(const std::string& what, const std::vector<std::string>& more) {
    const JobEnd end = place_.run(kRanks, what, more);
    EXPECT_TRUE(end.succeeded()) << what << "\n" << testing::PrintToString(end);
    return end;
  }

  void lose_a_store() {
    run("push", {url(), "4"});
    run("work", {"3"});  // these are only in the stores
    EXPECT_EQ(place_.steps(kRanks), 7u);
    EXPECT_EQ(JobPlace::steps_at(url(), kRanks), 4u);
    fs::remove_all(place_.store(2));
    const JobEnd end = run("restore", {url()});
    EXPECT_EQ(last_number(end.output, "found"), 4u);
    EXPECT_EQ(last_number(end.output, "fetched"), kRanks)
        << "the others had made room for later ones";
    EXPECT_EQ(place_.steps(kRanks), 5u);
    EXPECT_EQ(JobPlace::steps_at(url(), kRanks), 5u);
  }

  // A rank of each job dies. Then one store is lost, or all of them with the records.
  void kill_ranks() {
    std::mt19937_64 random(3);
    std::uint64_t complete = 0;
    int killed = 0;
    for (int i = 0; i < 6 && !HasFailure(); ++i) {
      const std::string rank = std::to_string(random() % kRanks);
      const std::string call = std::to_string(1 + random() % 2500);
      const JobEnd end = place_.run(
          kRanks, "push", {url(), "6", rank, call, random() % 2 == 0 ? "before" : "after"});
      place_.bury(kRanks);
      SCOPED_TRACE("rank " + rank + " died at call " + call + "\n" + testing::PrintToString(end));
      killed += end.succeeded() ? 0 : 1;
      const StepsOfJob progress = place_.progress();
      complete = std::max(complete, progress.pushed);
      if (complete == 0) continue;  // the remote may have no version
      const std::uint64_t seen = JobPlace::steps_at(url(), kRanks);
      if (i % 2 == 0) {
        fs::remove_all(place_.store(static_cast<std::uint32_t>(random() % kRanks)));
      } else {
        for (std::uint32_t p = 0; p < kRanks; ++p) fs::remove_all(place_.store(p));
        fs::remove_all(place_.records());
      }
      const std::uint64_t found = last_number(run("restore", {url()}).output, "found");
      EXPECT_GE(found, complete) << "a version that was complete there is gone";
      EXPECT_EQ(found, seen) << "not what a reader at the URL saw";
      EXPECT_LE(found, std::max(progress.begun, complete)) << "a version that nobody has begun";
      complete = found + 1;  // pushed by the restoring job
      EXPECT_EQ(place_.steps(kRanks), complete);
    }
    EXPECT_GT(killed, 1);
  }

  JobPlace place_{GetParam()};
};

class GroupS3Test : public GroupRemoteTest {
 protected:
  void SetUp() override {
    if (url_.empty()) GTEST_SKIP() << kNoS3;
  }
  std::string url() const override { return url_; }

 private:
  const std::string url_ = new_s3_url();
};

TEST_P(GroupRemoteTest, ALostStoreIsRestored) { lose_a_store(); }

TEST_P(GroupS3Test, ALostStoreIsRestored) { lose_a_store(); }

TEST_P(GroupRemoteTest, AnOutageOfOneRanksRemoteStopsNoJob) {
  run("outage", {remote()});
  EXPECT_EQ(place_.steps(kRanks), 3u);
  for (std::uint32_t p = 0; p < kRanks; ++p) fs::remove_all(place_.store(p));
  fs::remove_all(place_.records());
  EXPECT_EQ(last_number(run("restore", {url()}).output, "found"), 2u);
}

TEST_P(GroupRemoteTest, ARankDiesAtAnyCall) { kill_ranks(); }

TEST_P(GroupS3Test, ARankDiesAtAnyCall) { kill_ranks(); }

VELLUM_EACH_MPI(GroupRemoteTest);
VELLUM_EACH_MPI(GroupS3Test);

}  // namespace
}  // namespace vellum::test
