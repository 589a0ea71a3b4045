// cli/run/run_files.hpp: the files of a run, before and after it: changes by the program through
// the library, and changes that bypassed it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <vellum/store.hpp>

#include "cli/run/run_reports.hpp"
#include "cli/terminal/command.hpp"
#include "run/run/config.hpp"

namespace vellum::cli {

enum class RunProblem {
  changed_around,  // its content is not that of the closed live file
  never_opened,    // for a pattern: no matching file was
};

struct RunOutcome {
  std::uint64_t files = 0, commits = 0;  // committed while the program ran
  std::vector<std::pair<std::string, RunProblem>> problems;
  bool repaired = true;  // each file holds the last commit
};

class RunFiles {
 public:
  // Commits the current content of the files to their branches. The program creates files that do
  // not exist yet.
  RunFiles(Context& context, Store& store, std::vector<preload::RunTarget> targets);

  // Call when the program has ended. Updates each file to its branch's last commit, because a
  // killed program may have left an older state, and commits changes that bypassed the library.
  RunOutcome finish(const RunReports& reports);
  // The current branches of the targets.
  std::vector<std::string> branches() const;

 private:
  struct FileState {
    std::array<std::int64_t, 3> content;  // inode, size and time
    std::int64_t changed_ns;              // also by another mode or a second name
    bool operator==(const FileState&) const = default;
  };
  using FoundFiles = std::map<std::string, FileState>;
  using Clock = std::chrono::steady_clock;

  std::map<std::string, std::string> branches_of(std::size_t target) const;
  FoundFiles matching(std::size_t target) const;
  void refuse_branch_of_another(const preload::RunTarget& target) const;
  void restore_last_commit(Context& context, const preload::RunTarget& target);
  void finish_branch(const std::string& branch, const std::string& path, RunOutcome& outcome,
                     std::vector<std::string>& changed);
  void import_unknown(std::size_t target, RunOutcome& outcome, std::vector<std::string>& changed);
  template <typename Open>
  auto when_free(const std::string& branch, const Open& open) const;
  void adopt_unfinished(const std::string& branch, const std::string& path, RunOutcome& outcome);
  bool make_branch(const std::string& branch, const std::string& path);

  Store& store_;
  const preload::Config config_;
  std::map<std::string, std::uint64_t> sequences_;  // of the branches, before the run
  std::map<std::size_t, FoundFiles> before_;        // files that match patterns
  Clock::time_point wait_until_;                    // from then on, a busy branch is an error
};

}  // namespace vellum::cli
