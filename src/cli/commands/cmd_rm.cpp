// cli/commands/cmd_rm.cpp: vellum rm: removes snapshots or branches.
#include <memory>
#include <set>

#include "base/fail.hpp"
#include "cli/history/space.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct RmArguments {
  std::string store;
  std::vector<std::string> names;
  bool branch = false, dry_run = false;
};

// All names are checked before the first is removed.
void require_removable(const Store& store, const std::string& name, bool branch) {
  const VersionInfo version = store.version(name);
  if (is_commit(version)) {
    fail(Errc::invalid_argument, "'{}' is a commit; rm removes snapshots and branches", name);
  }
  if (version.is_branch && !branch) {
    fail(Errc::invalid_argument, "'{}' is a branch; rm --branch removes branches", name);
  }
  if (!version.is_branch && branch) {
    fail(Errc::invalid_argument, "'{}' is a snapshot; rm without --branch removes snapshots", name);
  }
}

void remove_in_store(Store& store, const RmArguments& arguments,
                     const std::set<std::string>& names) {
  for (const std::string& name : names) require_removable(store, name, arguments.branch);
  for (const std::string& name : names) {
    arguments.branch ? store.remove_branch(name) : store.remove_snapshot(name);
  }
}

// Bytes that only one of the versions needs: those that several of them share are more.
std::uint64_t freeable_in_store(const Store& store, const RmArguments& arguments,
                                const std::set<std::string>& names) {
  for (const std::string& name : names) require_removable(store, name, arguments.branch);
  const StoreStat stat = store.stat();
  std::uint64_t bytes = 0;
  for (const std::string& name : names) bytes += space_of(stat, store.version(name)).unique_bytes;
  return bytes;
}

std::string removed_text(const RmArguments& arguments, const std::set<std::string>& names) {
  const char* kind = arguments.branch ? "branch" : "snapshot";
  if (names.size() == 1) return fmt::format("{} '{}'", kind, *names.begin());
  return counted(names.size(), kind);
}

int report_dry_run(Context& context, const RmArguments& arguments,
                   const std::set<std::string>& names, const remote::RemoteFreeable& freeable) {
  const bool is_remote = remote::is_remote_url(arguments.store);
  const std::string size = human_bytes(freeable.bytes);
  context.report(
      Json{{"store", arguments.store},
           {"kind", arguments.branch ? "branch" : "snapshot"},
           {"dry_run", true},
           {"removed", names},
           {"freeable_objects", is_remote ? Json(freeable.objects) : Json(nullptr)},
           {"freeable_bytes", freeable.bytes}},
      fmt::format("would remove {}; gc would then free {}", removed_text(arguments, names),
                  is_remote ? fmt::format("{} of {}", counted(freeable.objects, "object"), size)
                            : fmt::format("{} or more", size)));
  return kExitOk;
}

// A set means its members.
std::set<std::string> wanted_names(const Store& store, const RmArguments& arguments) {
  if (arguments.branch) return {arguments.names.begin(), arguments.names.end()};
  std::set<std::string> names;
  for (const std::string& name : arguments.names) {
    const SnapshotSet set = find_set(store, name);
    if (set.members.empty()) names.insert(name);
    for (const VersionInfo& member : set.members) names.insert(member.name);
  }
  return names;
}

int report_removed(Context& context, const RmArguments& arguments,
                   const std::set<std::string>& names) {
  context.report(Json{{"store", arguments.store},
                      {"kind", arguments.branch ? "branch" : "snapshot"},
                      {"dry_run", false},
                      {"removed", names}},
                 "removed " + removed_text(arguments, names));
  return kExitOk;
}

int run_at_remote(Context& context, const RmArguments& arguments) {
  const RemoteByUrl place(arguments.store);
  const std::set<std::string> names(arguments.names.begin(), arguments.names.end());
  if (arguments.dry_run) {
    return report_dry_run(context, arguments, names,
                          freeable_at_remote(place, names, arguments.branch));
  }
  remove_at_remote(place, names, arguments.branch);
  return report_removed(context, arguments, names);
}

int run_rm(Context& context, const RmArguments& arguments) {
  if (remote::is_remote_url(arguments.store)) return run_at_remote(context, arguments);
  Store store = Store::open(arguments.store);
  const std::set<std::string> names = wanted_names(store, arguments);
  if (arguments.dry_run) {
    remote::RemoteFreeable freeable;
    freeable.bytes = freeable_in_store(store, arguments, names);
    return report_dry_run(context, arguments, names, freeable);
  }
  remove_in_store(store, arguments, names);
  return report_removed(context, arguments, names);
}

}  // namespace

void add_rm(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RmArguments>();
  CLI::App* command =
      add_command(app, context, "rm", "Remove snapshots or branches", arguments->store,
                  [&context, arguments] { return run_rm(context, *arguments); });
  command->add_option("NAME", arguments->names, "The snapshots, sets or branches to remove")
      ->required();
  command->add_flag("--branch", arguments->branch, "Remove branches instead of snapshots");
  command->add_flag("--dry-run", arguments->dry_run, "Only report what would be removed");
}

}  // namespace vellum::cli
