// cli/commands/cmd_log.cpp: vellum log: the versions of a store, or of one line, newest first.
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/listing.hpp"

namespace vellum::cli {
namespace {

struct LogArguments {
  std::string store;
  std::optional<std::string> line;
  bool names_only = false;
};

// `name` and the earlier snapshots on its line; for a branch also every snapshot made on it. A
// removed snapshot breaks the chain of parents, and a snapshot of a head need not be a parent of
// any version.
std::vector<VersionInfo> line_of(const Store& store, const std::string& name) {
  const VersionInfo last = store.version(name);
  std::unordered_map<std::string, VersionInfo> snapshots;
  for (VersionInfo& v : store.versions()) {
    if (!v.is_branch) {
      snapshots.emplace(v.name, std::move(v));
    }
  }
  std::set<std::string> before;
  std::string parent = last.parent;
  // insert() fails on a cycle, which only a corrupted store has.
  while (snapshots.contains(parent) && before.insert(parent).second) {
    parent = snapshots.at(parent).parent;
  }
  before.erase(name);
  std::vector<VersionInfo> line{last};
  for (const auto& [snapshot, v] : snapshots) {
    if (before.contains(snapshot) || (last.is_branch && v.branch == name)) {
      line.push_back(v);
    }
  }
  return line;
}

int run_log(Context& context, const LogArguments& arguments) {
  const Store store = Store::open(arguments.store);
  std::vector<VersionInfo> versions =
      arguments.line ? line_of(store, *arguments.line) : store.versions();
  sort_newest_first(versions);
  print_versions(context, store, versions, arguments.names_only);
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
  command->add_flag("--names", arguments->names_only, "List only names, one on each line");
}

}  // namespace vellum::cli
