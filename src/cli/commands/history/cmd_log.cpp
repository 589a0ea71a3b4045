// cli/commands/history/cmd_log.cpp: vellum log: the versions of a store, or of one line, newest first.
#include <memory>
#include <optional>

#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/listing.hpp"
#include "cli/terminal/version_names.hpp"

namespace vellum::cli {
namespace {

struct LogArguments {
  std::string store;
  std::optional<std::string> line;
  bool names_only = false;
  bool graph = false;
};

int run_log(Context& context, const LogArguments& arguments) {
  const Store store = Store::open(arguments.store);
  std::vector<VersionInfo> versions =
      arguments.line ? line_of(store, resolve_version(store, *arguments.line)) : store.versions();
  sort_newest_first(versions);
  if (arguments.graph && !context.json) {
    print_graph(context, versions, arguments.names_only);
  } else {
    print_versions(context, store, versions, arguments.names_only);
  }
  if (versions.empty() && !arguments.names_only) {
    context.explain(fmt::format(
        "{} has no version yet: vellum import, backup or run, or a program with the library, "
        "makes the first",
        store.path()));
  }
  return kExitOk;
}

}  // namespace

void add_log(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<LogArguments>();
  CLI::App* command =
      add_command(app, context, "log", "List branches and snapshots, newest first",
                  arguments->store, [&context, arguments] { return run_log(context, *arguments); });
  command->alias("ls");
  command->add_option("BRANCH", arguments->line,
                      "List only the line of this branch or snapshot: it and what came before");
  command->add_flag("--graph", arguments->graph, "Draw which version came from which");
  command->add_flag("--names", arguments->names_only, "List only names, one on each line");
}

}  // namespace vellum::cli
