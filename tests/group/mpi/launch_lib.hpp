// MPI jobs for tests: ranks.cpp under the launcher of each MPI that the build has found.
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
  std::string metall_ranks;  // empty: no Metall
};
const std::vector<Mpi>& all_mpis();

void PrintTo(const Mpi& mpi, std::ostream* out);

struct JobEnd {
  int status = 0;  // of waitpid(2)
  std::string output, errors;
  bool succeeded() const { return status == 0; }
};
void PrintTo(const JobEnd& end, std::ostream* out);

// A directory for jobs, with the records, the stores and the jobs' output.
class JobPlace {
 public:
  explicit JobPlace(const Mpi& mpi);

  std::string records() const { return directory_ / "records"; }
  std::string stores() const { return directory_ / "store-{}"; }
  std::string store(std::uint32_t partition) const;
  std::string file(const std::string& name) const { return directory_ / name; }

  // Runs `ranks WHAT RECORDS STORES ARGUMENTS...` on `ranks` ranks.
  Child start(int ranks, const std::string& what, const std::vector<std::string>& arguments = {});
  JobEnd wait(Child& job);
  JobEnd run(int ranks, const std::string& what, const std::vector<std::string>& arguments = {});
  JobEnd run_c(int ranks);
  // Another program, with all of its arguments.
  Child launch(int ranks, const std::vector<std::string>& program);
  std::string output() const;  // until now

  std::vector<pid_t> processes(int ranks) const;  // those that the ranks have recorded
  // Waits for the end of the last job's ranks; kills those that do not end.
  void bury(int ranks);

  StepsOfJob progress() const;
  // Checks the newest version without MPI: all partitions have the content of the same number of
  // steps. Returns that number; nullopt: no version yet.
  std::optional<std::uint64_t> steps(std::uint32_t partitions) const;
  // The same for the newest complete version at a remote, read only by its URL. Errc::not_found:
  // none.
  static std::uint64_t steps_at(const std::string& url, std::uint32_t partitions);

 private:
  const Mpi& mpi_;
  const TempDirectory directory_;
};

// The number in the last line of output that begins with `word`; 0: none.
std::uint64_t last_number(const std::string& output, const std::string& word);

inline constexpr int kRanks = 4;  // of most jobs

class MpiTest : public testing::TestWithParam<Mpi> {};

#define VELLUM_EACH_MPI(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Mpi, suite, testing::ValuesIn(vellum::test::all_mpis()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace vellum::test
