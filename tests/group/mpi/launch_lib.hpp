// Jobs of MPI for tests: ranks.cpp under the launcher of each MPI that the build has found.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/temp_directory.hpp"
#include "group/mpi/programs/model.hpp"
#include "support/child.hpp"

namespace vellum::test {

struct Mpi {
  std::string name;      // "openmpi"
  std::string launcher;  // path
  std::string ranks;     // the program
  std::string c_ranks;
  std::string metall_ranks;  // empty: Metall is not there
};
const std::vector<Mpi>& all_mpis();

void PrintTo(const Mpi& mpi, std::ostream* out);

struct JobEnd {
  int status = 0;  // as waitpid(2) gives it
  std::string output, errors;
  bool succeeded() const { return status == 0; }
};
void PrintTo(const JobEnd& end, std::ostream* out);

// A directory with the records, the stores and what the job says, on which jobs run.
class JobPlace {
 public:
  explicit JobPlace(const Mpi& mpi);

  std::string records() const { return directory_ / "records"; }
  std::string stores() const { return directory_ / "store-{}"; }
  std::string store(std::uint32_t partition) const;
  std::string file(const std::string& name) const { return directory_ / name; }

  // `ranks WHAT RECORDS STORES ARGUMENTS...` on so many ranks.
  Child start(int ranks, const std::string& what, const std::vector<std::string>& arguments = {});
  JobEnd wait(Child& job);
  JobEnd run(int ranks, const std::string& what, const std::vector<std::string>& arguments = {});
  JobEnd run_c(int ranks);
  // Another program, with all of its arguments.
  Child launch(int ranks, const std::vector<std::string>& program);
  std::string output() const;  // until now

  std::vector<pid_t> processes(int ranks) const;  // those that the ranks have noted
  // Waits until no rank of the last job lives; then ends those that do not go by themselves.
  void bury(int ranks);

  StepsOfJob progress() const;
  // Looks at the newest version with no MPI: all partitions hold what the same number of steps makes
  // of them. Returns that number; nothing: there is no version yet.
  std::optional<std::uint64_t> steps(std::uint32_t partitions) const;
  // The same of what is complete at a remote, read by its URL alone. Errc::not_found: nothing is.
  static std::uint64_t steps_at(const std::string& url, std::uint32_t partitions);

 private:
  const Mpi& mpi_;
  const TempDirectory directory_;
};

// The number behind the last line of output that begins with `word`; 0: there is none.
std::uint64_t last_number(const std::string& output, const std::string& word);

inline constexpr int kRanks = 4;  // of most jobs

class MpiTest : public testing::TestWithParam<Mpi> {};

#define VELLUM_EACH_MPI(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Mpi, suite, testing::ValuesIn(vellum::test::all_mpis()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace vellum::test
