// cli/commands/cmd_snapshot.cpp: vellum snapshot (also: tag): creates a snapshot, or lists them.
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct SnapshotArguments {
  std::string store;
  std::optional<std::string> name;
  std::string from = "main";
  std::string message;
  bool all = false;
  bool names_only = false;
};

int make_set(Context& context, const SnapshotArguments& arguments) {
  Store store = Store::open(arguments.store);
  std::vector<std::string> branches;
  for (const VersionInfo& v : branch_heads(store)) branches.push_back(v.name);
  if (branches.empty()) fail(Errc::not_found, "{} has no branch to keep", arguments.store);
  create_set(store, *arguments.name, branches, arguments.message);
  context.report(
      Json{{"store", store.path()}, {"set", *arguments.name}, {"branches", branches}},
      fmt::format("kept {} as '{}'", counted(branches.size(), "branch"), *arguments.name));
  return kExitOk;
}

int make_snapshot(Context& context, SnapshotArguments arguments) {
  require_good_message(arguments.message);
  if (arguments.all) return make_set(context, arguments);
  Store store = Store::open(arguments.store);
  arguments.from = resolve_version(store, arguments.from);
  store.create_snapshot(*arguments.name, arguments.from, arguments.message);
  Json object = version_json(store.version(*arguments.name));
  object["store"] = store.path();
  object["from"] = arguments.from;
  context.report(object,
                 fmt::format("created snapshot '{}' from '{}'", *arguments.name, arguments.from));
  return kExitOk;
}

int run_snapshot(Context& context, const SnapshotArguments& arguments) {
  if (arguments.name) {
    return make_snapshot(context, arguments);
  }
  list_kind(context, arguments.store, false, arguments.names_only);
  return kExitOk;
}

}  // namespace

void add_snapshot(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<SnapshotArguments>();
  CLI::App* command = add_command(
      app, context, "snapshot", "Create a snapshot; without a name, list snapshots",
      arguments->store, [&context, arguments] { return run_snapshot(context, *arguments); });
  command->alias("tag");
  command->add_option("NAME", arguments->name, "The new snapshot's name");
  CLI::Option* const from =
      command->add_option("FROM", arguments->from,
                          "The version to keep: a branch (its head) or a snapshot (default: main)");
  command->add_flag("--all", arguments->all, "Keep the heads of all branches, as one set NAME")
      ->excludes(from);
  command->add_option("-m,--message", arguments->message, "The message that log and show print")
      ->type_name("MSG");
  command->add_flag("--names", arguments->names_only, "List only names, one on each line");
}

}  // namespace vellum::cli
