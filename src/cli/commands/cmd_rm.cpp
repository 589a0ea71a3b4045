// cli/commands/cmd_rm.cpp: vellum rm: removes snapshots or branches.
#include <memory>
#include <set>

#include "base/fail.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct RmArguments {
  std::string store;
  std::vector<std::string> names;
  bool branch = false;
};

// All names are checked before the first is removed.
void require_removable(const Store& store, const std::string& name, bool branch) {
  const VersionInfo version = store.version(name);
  if (version.is_branch && !branch) {
    fail(Errc::invalid_argument, "'{}' is a branch; rm --branch removes branches", name);
  }
  if (!version.is_branch && branch) {
    fail(Errc::invalid_argument, "'{}' is a snapshot; rm without --branch removes snapshots", name);
  }
}

void remove_in_store(const RmArguments& arguments, const std::set<std::string>& names) {
  Store store = Store::open(arguments.store);
  for (const std::string& name : names) require_removable(store, name, arguments.branch);
  for (const std::string& name : names) {
    arguments.branch ? store.remove_branch(name) : store.remove_snapshot(name);
  }
}

int run_rm(Context& context, const RmArguments& arguments) {
  const std::set<std::string> names(arguments.names.begin(), arguments.names.end());
  if (remote::is_remote_url(arguments.store)) {
    remove_at_remote(arguments.store, names, arguments.branch);
  } else {
    remove_in_store(arguments, names);
  }
  const char* kind = arguments.branch ? "branch" : "snapshot";
  const std::string sentence = names.size() == 1
                                   ? fmt::format("removed {} '{}'", kind, *names.begin())
                                   : "removed " + counted(names.size(), kind);
  context.report(Json{{"store", arguments.store}, {"kind", kind}, {"removed", names}}, sentence);
  return kExitOk;
}

}  // namespace

void add_rm(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RmArguments>();
  CLI::App* command =
      add_command(app, context, "rm", "Remove snapshots or branches", arguments->store,
                  [&context, arguments] { return run_rm(context, *arguments); });
  command->add_option("NAME", arguments->names, "The snapshots or branches to remove")->required();
  command->add_flag("--branch", arguments->branch, "Remove branches instead of snapshots");
}

}  // namespace vellum::cli
