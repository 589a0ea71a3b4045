// cli/commands/group/group_gc.cpp: vellum group gc and rm.
#include "cli/commands/group/cmd_group.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"

namespace vellum::cli {

int run_group_rm(Context& context, const GroupArguments& arguments) {
  remove_group_version(arguments.records, arguments.version);
  context.report(Json{{"records", arguments.records}, {"removed", arguments.version}},
                 "removed version " + arguments.version);
  return kExitOk;
}

int run_group_gc(Context& context, const GroupArguments& arguments) {
  GroupGcReport report;
  {
    ProgressMeter meter("group gc", context.progress_wanted());
    report = collect_group_garbage(arguments.records, arguments.dry_run, arguments.stores,
                                   meter.callback());
  }
  for (const std::string& store : report.unreachable) context.explain("not collected: " + store);
  const bool dry = arguments.dry_run;
  context.report(
      Json{{"records", arguments.records},
           {"dry_run", dry},
           {"records_removed", report.records_removed},
           {"snapshots_removed", report.snapshots_removed},
           {"stores", report.stores},
           {"freed_bytes", report.freed_bytes},
           {"freeable_bytes", report.freeable_bytes},
           {"unreachable", report.unreachable}},
      fmt::format("{}remove{} {} and {}; {}free{} {} in {}", dry ? "would " : "", dry ? "" : "d",
                  counted(report.records_removed, "record"),
                  counted(report.snapshots_removed, "snapshot"), dry ? "would " : "",
                  dry ? "" : "d", human_bytes(dry ? report.freeable_bytes : report.freed_bytes),
                  counted(report.stores, "store")));
  return kExitOk;
}

}  // namespace vellum::cli
