// kill -9 of a rank at any file call or at any time, and of the launcher: the newest version is the
// last completed one or the one in progress, complete on all ranks, and the next job continues from
// it.
//
// The short form kills a few times. VELLUM_GROUP_KILLS=N kills N times for each MPI and test;
// VELLUM_GROUP_SEED=N chooses other times, so that a long run can be split.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vellum/group.hpp>

#include "group/mpi/launch_lib.hpp"

namespace vellum::test {
namespace {

constexpr std::uint64_t kStepsAJob = 12;

int kills_wanted(int short_form) {
  const char* const wanted = std::getenv("VELLUM_GROUP_KILLS");
  return wanted == nullptr ? short_form : std::atoi(wanted);
}

std::uint64_t seed_wanted() {
  const char* const wanted = std::getenv("VELLUM_GROUP_SEED");
  return wanted == nullptr ? 7 : std::strtoull(wanted, nullptr, 10);
}

class GroupKillTest : public MpiTest {
 protected:
  // Checks the group after a job, and records its number of steps.
  void look(const JobEnd& end, const std::string& what) {
    SCOPED_TRACE(what + "\n" + testing::PrintToString(end));
    const StepsOfJob progress = place_.progress();
    const std::uint64_t made = std::max(known_, progress.made);
    const auto found = place_.steps(kRanks);
    ASSERT_TRUE(found.has_value() || made == 0);
    const std::uint64_t steps = found.value_or(0);
    EXPECT_GE(steps, made) << "a version that was made is gone";
    EXPECT_LE(steps, std::max(known_, progress.begun)) << "a version that nobody has begun";
    EXPECT_LE(progress.begun, made + 1);
    in_progress_ += steps > made ? 1 : 0;
    known_ = steps;
    if (!end.succeeded()) ++killed_;
  }

  void kill_at_calls(int kills) {
    std::mt19937_64 random(seed_wanted());
    for (int i = 0; i < kills && !HasFailure(); ++i) {
      const std::string rank = std::to_string(random() % kRanks);
      const std::string call = std::to_string(1 + random() % 900);
      const std::string moment = random() % 2 == 0 ? "before" : "after";
      const JobEnd end =
          place_.run(kRanks, "work", {std::to_string(kStepsAJob), rank, call, moment});
      place_.bury(kRanks);
      look(end, "rank " + rank + " died " + moment + " call " + call);
    }
  }

  // At any time: a rank or the launcher.
  void kill_at_moments(int kills) {
    std::mt19937_64 random(seed_wanted());
    for (int i = 0; i < kills && !HasFailure(); ++i) {
      Child job = place_.start(kRanks, "work", {"5000"});
      while (job.running() && place_.output().find("found") == std::string::npos) usleep(2'000);
      usleep(static_cast<useconds_t>(random() % 60'000));
      const auto pids = place_.processes(kRanks);
      ASSERT_EQ(pids.size(), kRanks);
      const std::size_t whom = random() % (kRanks + 1);
      ::kill(whom == kRanks ? job.pid() : pids[whom], SIGKILL);
      const JobEnd end = place_.wait(job);
      place_.bury(kRanks);
      EXPECT_FALSE(end.succeeded());
      look(end,
           whom == kRanks ? std::string("the launcher died") : fmt::format("rank {} died", whom));
    }
  }

  // Finally a complete job, without damage.
  void go_on() {
    const JobEnd end = place_.run(kRanks, "work", {"3"});
    EXPECT_TRUE(end.succeeded()) << testing::PrintToString(end);
    EXPECT_EQ(place_.steps(kRanks), known_ + 3);
    for (const GroupProblem& problem : verify_group(place_.records(), true).problems) {
      ADD_FAILURE() << problem.version << ": " << problem.store << ": " << problem.reason;
    }
    fmt::print("{}: {} jobs killed, {} versions in progress found whole, {} steps\n",
               GetParam().name, killed_, in_progress_, known_ + 3);
  }

  JobPlace place_{GetParam()};
  std::uint64_t known_ = 0;
  int killed_ = 0, in_progress_ = 0;
};

TEST_P(GroupKillTest, ARankDiesAtAnyCall) {
  kill_at_calls(kills_wanted(6));
  go_on();
  EXPECT_GT(killed_, 0);
}

TEST_P(GroupKillTest, ARankOrTheLauncherDiesAtAnyMoment) {
  const int kills = kills_wanted(4);
  kill_at_moments(kills);
  go_on();
  EXPECT_EQ(killed_, kills);
}

VELLUM_EACH_MPI(GroupKillTest);

}  // namespace
}  // namespace vellum::test
