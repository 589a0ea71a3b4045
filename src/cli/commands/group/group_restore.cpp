// cli/commands/group/group_restore.cpp: vellum group restore.
#include "cli/commands/group/cmd_group.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "group/remote/restore.hpp"

namespace vellum::cli {

int run_group_restore(Context& context, const GroupArguments& arguments) {
  group::RestoreReport report;
  {
    ProgressMeter meter("group restore", context.progress_wanted());
    group::OneRank all;
    report = group::restore_group(
        base::posix_fs(), all,
        {arguments.url, arguments.records, arguments.version, arguments.stores, std::nullopt},
        meter.callback());
  }
  const std::string restored =
      report.name.empty() ? std::to_string(report.restored_number) : report.name;
  context.report(
      Json{{"records", arguments.records},
           {"url", arguments.url},
           {"version", report.number},
           {"restored", report.restored_number},
           {"name", report.name},
           {"partitions_fetched", report.partitions_fetched},
           {"bytes_read", report.bytes_read}},
      fmt::format("version {} of the remote is version {} now: fetched {} ({})", restored,
                  report.number, counted(report.partitions_fetched, "partition"),
                  human_bytes(report.bytes_read)));
  return kExitOk;
}

}  // namespace vellum::cli
