// cli/commands/group/group_export.cpp: vellum group export.
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "cli/commands/group/cmd_group.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"

namespace vellum::cli {

// An existing file is an error; files that were written before it are kept, each complete.
int run_group_export(Context& context, const GroupArguments& arguments) {
  const auto version = GroupVersion::open(arguments.records, arguments.version, arguments.stores);
  base::ensure_directory(base::posix_fs(), base::without_end_slashes(arguments.to));
  Json files = Json::array();
  for (std::uint32_t p = 0; p < version.partitions(); ++p) {
    const std::string file = fmt::format("{}/partition-{}", arguments.to, p);
    ProgressMeter meter("group export", context.progress_wanted());
    version.export_partition(p, file, meter.callback());
    files.push_back(file);
  }
  const GroupVersionInfo& info = version.info();
  context.report(
      Json{{"records", arguments.records},
           {"version", info.number},
           {"name", info.name},
           {"files", std::move(files)}},
      fmt::format("exported {} of version {} to {}", counted(version.partitions(), "partition"),
                  group_version_label(info), arguments.to));
  return kExitOk;
}

}  // namespace vellum::cli
