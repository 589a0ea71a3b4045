// cli/run_files.hpp: the files of a run, before it and behind it: what the program did to them
// through the library, and what was done around it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <vellum/store.hpp>

#include "cli/command.hpp"
#include "cli/run_reports.hpp"
#include "shim/config.hpp"

namespace vellum::cli {

enum class RunProblem {
  changed_around,  // its content is not what a live file has left there
  never_opened,    // or a pattern: nothing that matches
};

struct RunOutcome {
  std::uint64_t files = 0, commits = 0;  // that were committed while the program ran
  std::vector<std::pair<std::string, RunProblem>> problems;
  bool mended = true;  // each file holds the last commit
};

class RunFiles {
 public:
  // What the files hold now becomes their branches'. A file that is not there yet is made by the
  // program.
  RunFiles(Context& context, Store& store, std::vector<shim::Target> targets);

  // When the program has ended: brings each file to its branch's last commit, as a program that was
  // killed may have left it behind that; and commits what was written around the library.
  RunOutcome finish(const RunReports& reports);
  // The branches that the targets have by now.
  std::vector<std::string> branches() const;

 private:
  using State = std::array<std::int64_t, 4>;  // inode, size and times
  using Found = std::map<std::string, State>;
  using Clock = std::chrono::steady_clock;

  std::map<std::string, std::string> branches_of(std::size_t target) const;
  Found matching(std::size_t target) const;
  void bring_up_to_date(Context& context, const shim::Target& target);
  void finish_branch(const std::string& branch, const std::string& path, RunOutcome& outcome,
                     std::vector<std::string>& changed);
  void take_unknown(std::size_t target, RunOutcome& outcome, std::vector<std::string>& changed);
  template <typename Open>
  auto when_free(const Open& open) const;
  void adopt_unfinished(const std::string& branch, const std::string& path, RunOutcome& outcome);
  bool make_branch(const std::string& branch, const std::string& path);

  Store& store_;
  const shim::Config config_;
  std::map<std::string, std::uint64_t> sequences_;  // of branches, before
  std::map<std::size_t, Found> before_;             // files that match patterns
  Clock::time_point wait_until_;                    // then a busy branch is an error
};

}  // namespace vellum::cli
