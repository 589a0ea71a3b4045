// cli/commands/group/cmd_group.hpp: the commands of `vellum group`.
#pragma once

#include <memory>
#include <string>

#include <vellum/group.hpp>

#include "cli/terminal/command.hpp"

namespace vellum::cli {

struct GroupArguments {
  std::string records;  // the directory; for reading, also the URL of the group's remote
  std::string version;  // a name or a number; empty: the newest
  std::string stores;   // a path with "{}"; empty: the recorded paths
  std::string to;       // export: a directory
  std::string url;      // restore: of the remote
  bool read_data = false;
  bool dry_run = false;
};

Json group_version_json(const GroupVersionInfo& info);
// "step-1000", or "7" for a version without a name.
std::string group_version_label(const GroupVersionInfo& info);

int run_group_log(Context& context, const GroupArguments& arguments);
int run_group_show(Context& context, const GroupArguments& arguments);
int run_group_verify(Context& context, const GroupArguments& arguments);
int run_group_export(Context& context, const GroupArguments& arguments);
int run_group_rm(Context& context, const GroupArguments& arguments);
int run_group_restore(Context& context, const GroupArguments& arguments);
int run_group_gc(Context& context, const GroupArguments& arguments);

}  // namespace vellum::cli
