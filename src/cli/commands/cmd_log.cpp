// cli/commands/cmd_log.cpp: vellum log: the versions of a store, or of one line, newest first.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/fail.hpp"
#include "cli/remote/at_remote.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/listing.hpp"
#include "remote/engine/url.hpp"

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
std::vector<VersionInfo> line_of(std::vector<VersionInfo> versions, const VersionInfo& last) {
  const std::string& name = last.name;
  std::unordered_map<std::string, VersionInfo> snapshots;
  for (VersionInfo& v : versions) {
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

std::vector<VersionInfo> versions_at_remote(const LogArguments& arguments) {
  std::vector<VersionInfo> versions = list_remote(arguments.store);
  if (!arguments.line) return versions;
  const auto last = std::find_if(versions.begin(), versions.end(),
                                 [&](const VersionInfo& v) { return v.name == *arguments.line; });
  if (last == versions.end()) {
    fail(Errc::not_found, "{}: the remote has no version '{}'", arguments.store, *arguments.line);
  }
  return line_of(versions, VersionInfo(*last));
}

std::vector<VersionInfo> versions_in_store(const LogArguments& arguments) {
  const Store store = Store::open(arguments.store);
  if (!arguments.line) return store.versions();
  return line_of(store.versions(), store.version(*arguments.line));
}

int run_log(Context& context, const LogArguments& arguments) {
  const bool is_remote = remote::is_remote_url(arguments.store);
  std::vector<VersionInfo> versions =
      is_remote ? versions_at_remote(arguments) : versions_in_store(arguments);
  sort_newest_first(versions);
  print_versions(context, arguments.store, versions, arguments.names_only);
  if (versions.empty() && !arguments.names_only && is_remote) {
    context.explain(arguments.store + " has no version yet: vellum push sends the first");
  } else if (versions.empty() && !arguments.names_only) {
    context.explain(fmt::format(
        "{} has no version yet: vellum import, backup or run, or a program with the library, "
        "makes the first",
        arguments.store));
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
