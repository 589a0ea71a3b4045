// The example mpi_temporal_graph: it compares each search of a past global version by all ranks
// with a search by one process, and fails if they differ.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vellum/group.hpp>

#include "group/mpi/launch_lib.hpp"

namespace vellum::test {
namespace {

#ifdef VELLUM_MPI_EXAMPLE

std::ptrdiff_t count(const std::string& text, const std::string& part) {
  std::ptrdiff_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

class MpiExampleTest : public testing::Test {
 protected:
  Child start(const std::vector<std::string>& arguments) {
    std::vector<std::string> program = {VELLUM_MPI_EXAMPLE, place_.file("graph")};
    program.insert(program.end(), arguments.begin(), arguments.end());
    std::filesystem::create_directories(place_.file("graph"));
    return place_.launch(kRanks, program);
  }
  // The number of searched periods.
  std::ptrdiff_t run(const std::vector<std::string>& arguments) {
    Child job = start(arguments);
    const JobEnd end = place_.wait(job);
    EXPECT_TRUE(end.succeeded()) << testing::PrintToString(end);
    return count(end.output, "as of ");
  }

  JobPlace place_{all_mpis().front()};
};

// R-MAT; killed and restarted.
TEST_F(MpiExampleTest, SearchesPastVersionsAsOneProcessDoes) {
  Child job = start({});
  while (job.running() && count(place_.output(), "version") < 4) usleep(2'000);
  ::kill(job.pid(), SIGKILL);
  place_.wait(job);
  const std::string records = place_.file("graph") + "/records";
  std::ptrdiff_t searched = -1;
  for (int i = 0; i < 200 && searched < 0; ++i) {  // until the ranks have noticed
    Child again = start({});
    const JobEnd end = place_.wait(again);
    if (end.succeeded()) searched = count(end.output, "as of ");
    if (!end.succeeded()) {
      ASSERT_NE(end.errors.find("has the group open"), std::string::npos) << end.errors;
      usleep(20'000);
    }
  }
  EXPECT_EQ(searched, 10);
  EXPECT_TRUE(verify_group(records).problems.empty());
}

// An edge list, by months.
TEST_F(MpiExampleTest, TakesAnEdgeList) {
  const std::string edges = place_.file("edges");
  std::mt19937_64 random(1);
  {
    std::ofstream out(edges);
    for (int i = 0; i < 3000; ++i) {
      out << random() % 400 << ' ' << random() % 400 << ' ' << 1262304000 + i * 7200 << '\n';
    }
  }
  EXPECT_EQ(run({edges, "--month"}), 9);
}

#endif

}  // namespace
}  // namespace vellum::test
