// cli/run/run_reports.hpp: the memory to which the processes of a run report (run/run/run_record.hpp).
#pragma once

#include <string>
#include <vector>

#include "run/run/program_kind.hpp"
#include "run/run/run_record.hpp"

namespace vellum::cli {

class RunReports {
 public:
  RunReports();
  ~RunReports();
  RunReports(const RunReports&) = delete;
  RunReports& operator=(const RunReports&) = delete;

  std::string variable() const;  // the value of preload::kRecordVariable
  bool was_opened(std::size_t target) const { return record_->targets[target].opened != 0; }
  bool was_changed(std::size_t target) const { return record_->targets[target].changed != 0; }
  // False if a process was started that cannot report: unreported events may have happened.
  bool complete() const { return record_->unreachable == 0; }

  struct Program {
    std::string path;
    preload::ProgramKind kind;
  };
  // The programs that the library could not intercept.
  std::vector<Program> programs() const;

 private:
  int fd_ = -1;
  preload::RunRecord* record_ = nullptr;
};

}  // namespace vellum::cli
