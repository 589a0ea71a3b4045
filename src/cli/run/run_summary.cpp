#include "cli/run/run_summary.hpp"

#include <algorithm>
#include <span>

namespace vellum::cli {
namespace {

constexpr std::size_t kMaxProblemLines = 10;  // lines that a person reads

const char* name_of(RunProblem problem) {
  return problem == RunProblem::never_opened ? "never_opened" : "changed_around";
}

const char* meaning_of(RunProblem problem) {
  return problem == RunProblem::never_opened
             ? "was never opened"
             : "changed around vellum: not every flush of it is a version";
}

const char* name_of(preload::ProgramKind kind) {
  switch (kind) {
    case preload::ProgramKind::statically_linked:
      return "statically_linked";
    case preload::ProgramKind::other_machine:
      return "other_machine";
    case preload::ProgramKind::other_user:
      return "other_user";
    case preload::ProgramKind::go:
      return "go";
    case preload::ProgramKind::preloadable:
    case preload::ProgramKind::unknown:
      break;
  }
  return "unknown";
}

Json object(const std::string& store, int program_status, const RunOutcome& outcome,
            const RunReports& reports) {
  Json problems = Json::array(), programs = Json::array();
  for (const auto& [file, problem] : outcome.problems)
    problems.push_back({{"file", file}, {"problem", name_of(problem)}});
  for (const auto& program : reports.programs())
    programs.push_back({{"program", program.path}, {"kind", name_of(program.kind)}});
  return {{"store", store},         {"program_status", program_status},
          {"files", outcome.files}, {"commits", outcome.commits},
          {"problems", problems},   {"programs_around_vellum", programs}};
}

}  // namespace

void print_run_summary(Context& context, const std::string& store, int program_status,
                       const RunOutcome& outcome, const RunReports& reports) {
  if (!context.quiet && !context.json)
    print_error(fmt::format("{}, {} in {}", counted(outcome.files, "file"),
                            counted(outcome.commits, "commit"), store));
  const std::size_t said = std::min(outcome.problems.size(), kMaxProblemLines);
  for (const auto& [file, problem] : std::span(outcome.problems).first(said))
    print_error(fmt::format("{}: {}", file, meaning_of(problem)));
  if (said < outcome.problems.size())
    print_error(fmt::format("and {} more (--json names them all)",
                            counted(outcome.problems.size() - said, "file")));
  if (context.json) context.out.print_json(object(store, program_status, outcome, reports));
}

}  // namespace vellum::cli
