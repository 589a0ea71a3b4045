// cli/commands/group/group_verify.cpp: vellum group verify.
#include "base/fail.hpp"
#include "cli/commands/group/cmd_group.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"

namespace vellum::cli {
namespace {

Json report_json(const GroupArguments& arguments, const GroupVerifyReport& report) {
  Json problems = Json::array();
  for (const GroupProblem& problem : report.problems) {
    problems.push_back(Json{{"version", problem.version},
                            {"partition", problem.partition},
                            {"store", problem.store},
                            {"reason", problem.reason}});
  }
  return Json{{"records", arguments.records},     {"ok", report.problems.empty()},
              {"read_data", arguments.read_data}, {"versions", report.versions},
              {"complete", report.complete},      {"stores", report.stores},
              {"problems", std::move(problems)}};
}

void print_text(Context& context, const GroupVerifyReport& report) {
  if (context.quiet) return;
  for (const GroupProblem& problem : report.problems) {
    context.out.print_text("version {}, partition {}: {}\n", problem.version, problem.partition,
                           printable(problem.reason));
  }
  context.out.print_text("{} of {} are complete; checked {}\n", report.complete,
                         counted(report.versions, "version"), counted(report.stores, "store"));
}

}  // namespace

int run_group_verify(Context& context, const GroupArguments& arguments) {
  GroupVerifyReport report;
  {
    ProgressMeter meter("group verify", context.progress_wanted());
    report =
        verify_group(arguments.records, arguments.read_data, arguments.stores, meter.callback());
  }
  if (!context.json) {
    print_text(context, report);
  } else if (report.problems.empty()) {
    context.out.print_json(report_json(arguments, report));
  } else {
    context.begin_object(report_json(arguments, report));
  }
  if (!report.problems.empty()) {
    fail(Errc::corrupted, "{}: {} of {} are incomplete", arguments.records,
         report.versions - report.complete, counted(report.versions, "version"));
  }
  return kExitOk;
}

}  // namespace vellum::cli
