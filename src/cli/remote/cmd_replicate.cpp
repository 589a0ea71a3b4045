// cli/remote/cmd_replicate.cpp: vellum replicate: sends each commit to a remote.
#include <map>
#include <memory>
#include <set>

#include "base/fail.hpp"
#include "base/threads/end_request.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/options/arguments.hpp"
#include "cli/remote/remote_by_url.hpp"
#include "cli/remote/replication_reports.hpp"
#include "cli/remote/transfer_arguments.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "remote/lazy/open_remote.hpp"
#include "remote/replicator.hpp"

namespace vellum::cli {
namespace {

struct ReplicateArguments {
  std::string store, url;
  double interval_ms = 1000;
  bool take_over = false;
  RetentionPolicy retention;
  std::string metrics;
  TransferArguments transfer;
};

// The id of the version's set, unless two stores may have different sets of this id; empty: none.
std::string safe_set_of(const VersionInfo& version) {
  const api::Membership of = api::membership_of(version);
  return of.has_hash ? of.id : "";
}

// The names of the snapshots that no rule keeps; null: no rule is given. A set goes as a whole, also
// with members of branches that are gone, and stays with those that are not this store's.
remote::RetentionFn retention_of(const RetentionPolicy& policy) {
  if (!has_rule(policy)) return nullptr;
  return [policy](const remote::SnapshotsThere& snapshots) {
    std::set<std::string> stay;
    for (const VersionInfo& v : versions_of(snapshots.others)) stay.insert(safe_set_of(v));
    stay.erase("");
    std::vector<std::string> gone;
    std::set<std::string> gone_sets;
    for (const RetentionDecision& decision : decide_retention(versions_of(snapshots.own), policy)) {
      const std::string set = safe_set_of(decision.version);
      if (!decision.kept_by.empty() || stay.contains(set)) continue;
      gone.push_back(decision.version.name);
      gone_sets.insert(set);
    }
    gone_sets.erase("");
    for (const VersionInfo& v : versions_of(snapshots.orphaned)) {
      if (gone_sets.contains(safe_set_of(v))) gone.push_back(v.name);
    }
    return gone;
  };
}

int run_replicate(Context& context, const ReplicateArguments& arguments) {
  const auto store = remote::open_store_with_remotes(base::posix_fs(), arguments.store);
  ReplicationReports reports(context, store->path(), arguments.url, arguments.metrics);
  const std::chrono::milliseconds interval(static_cast<std::int64_t>(arguments.interval_ms));
  remote::Replicator replicator(*store, arguments.url, {interval, arguments.take_over},
                                arguments.transfer.open(arguments.url),
                                retention_of(arguments.retention));
  base::EndRequest end;  // until here, the signal itself ends the probe
  const ReplicateState state = replicator.run([&](const ReplicateState& now) {
    reports.tell(now);
    warn(replicator.take_warnings());
    return !end.has_come();
  });
  warn(replicator.take_warnings());
  reports.tell_end(state);
  if (!state.failure.empty()) {
    fail(Errc::io, "the remote does not have all commits: {}", state.failure);
  }
  context.report(Json{{"store", store->path()},
                      {"url", arguments.url},
                      {"pushes", state.pushes},
                      {"versions", state.versions},
                      {"bytes_uploaded", state.bytes_uploaded},
                      {"forgotten", state.forgotten}},
                 fmt::format("the remote has all commits: sent {} in {} ({})",
                             counted(state.versions, "version"),
                             state.pushes == 1 ? "1 push" : fmt::format("{} pushes", state.pushes),
                             human_bytes(state.bytes_uploaded)));
  return kExitOk;
}

}  // namespace

void add_replicate(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ReplicateArguments>();
  CLI::App* command = add_command(
      app, context, "replicate", "Send each commit to a remote, until a signal", arguments->store,
      [&context, arguments] { return run_replicate(context, *arguments); });
  command->add_option("URL", arguments->url, "The remote: s3://bucket/prefix or file:///path")
      ->required();
  command
      ->add_option("--interval", arguments->interval_ms,
                   "The most that a lost machine loses, such as 500ms, 1s, 5m (default: 1s)")
      ->transform(CLI::AsNumberWithUnit(
          std::map<std::string, double>{{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}},
          CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME"))
      ->check(CLI::Range(1.0, 1e12));
  command->add_flag("--take-over", arguments->take_over,
                    "Also push branches that another store has pushed: its pushes are dropped");
  add_retention_options(*command, arguments->retention);
  command
      ->add_option("--metrics", arguments->metrics,
                   "Write the state to this file, as OpenMetrics text")
      ->type_name("FILE");
  add_transfer_options(*command, arguments->transfer);
}

}  // namespace vellum::cli
