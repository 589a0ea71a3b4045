// cli/commands/history/cmd_log.cpp: vellum log: the versions of a store or remote, or of one line,
// newest first.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "base/bytes/hex.hpp"
#include "base/fail.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct LogArguments {
  std::string store;
  std::optional<std::string> line;
  bool names_only = false;
  bool graph = false;
  bool commits = false, signatures = false;
  std::optional<std::size_t> most;
  std::string text;  // "": all
  std::optional<std::string> since, until;
  std::string at;
};

// A set counts as one.
void keep_first(std::size_t most, std::vector<VersionInfo>& versions) {
  std::set<std::string> sets;
  std::size_t entries = 0;
  std::erase_if(versions, [&](const VersionInfo& v) {
    const std::string set = set_id_of(v);
    if (set.empty()) return ++entries > most;
    if (sets.contains(set)) return false;
    if (++entries > most) return true;
    sets.insert(set);
    return false;
  });
}

void keep_wanted(const LogArguments& arguments, std::vector<VersionInfo>& versions) {
  std::erase_if(versions, [&](const VersionInfo& v) {
    return v.name.find(arguments.text) == std::string::npos &&
           v.message.find(arguments.text) == std::string::npos;
  });
  if (arguments.since) {
    const auto since = moment_of(*arguments.since, Edge::begin);
    std::erase_if(versions, [&](const VersionInfo& v) { return shown_time(v) < since; });
  }
  if (arguments.until) {
    const auto until = moment_of(*arguments.until, Edge::end);
    std::erase_if(versions, [&](const VersionInfo& v) { return shown_time(v) > until; });
  }
  if (arguments.most) keep_first(*arguments.most, versions);
}

std::vector<VersionInfo> versions_at_remote(const LogArguments& arguments) {
  std::vector<VersionInfo> versions;
  read_with_advice(arguments.store, [&] { versions = list_remote(arguments.store); });
  if (!arguments.line) return versions;
  const auto last = std::find_if(versions.begin(), versions.end(),
                                 [&](const VersionInfo& v) { return v.name == *arguments.line; });
  if (last == versions.end()) {
    fail(Errc::not_found, "{}: the remote has no version '{}'", arguments.store, *arguments.line);
  }
  return line_of(versions, VersionInfo(*last));
}

std::size_t entries_of(const std::vector<VersionInfo>& snapshots) {
  std::set<std::string> sets;
  std::size_t entries = 0;
  for (const VersionInfo& v : snapshots) {
    const std::string set = set_id_of(v);
    if (set.empty() || sets.insert(set).second) ++entries;
  }
  return entries;
}

// The branches, and at least those snapshots that keep_first() keeps: the newest, and all members
// of their sets. Nothing: this is no faster than the list of all versions.
std::optional<std::vector<VersionInfo>> newest_versions(const Store& store, std::size_t most) {
  if (most == 0 || most > api::kNewestFast) return std::nullopt;
  std::vector<VersionInfo> snapshots = newest_snapshots(store, most);
  const bool are_all = snapshots.size() < most;
  if (!are_all && entries_of(snapshots) < most) {  // sets
    snapshots = newest_snapshots(store, api::kNewestFast);
    if (snapshots.size() == api::kNewestFast && entries_of(snapshots) < most) return std::nullopt;
  }
  std::set<std::string> names;
  std::map<std::string, std::size_t> sets;  // the number of members that are here
  for (const VersionInfo& v : snapshots) {
    names.insert(v.name);
    if (const std::string set = set_id_of(v); !set.empty()) ++sets[set];
  }
  std::erase_if(sets, [&](const auto& set) {
    const auto member = std::find_if(snapshots.begin(), snapshots.end(), [&](const VersionInfo& v) {
      return set_id_of(v) == set.first;
    });
    const api::Membership whole = api::membership_of(*member);
    return whole.has_hash && whole.members == set.second;
  });
  for (const auto& [set, count] : sets) {
    for (VersionInfo& v : snapshots_named(store, set + "+")) {
      if (set_id_of(v) == set && names.insert(v.name).second) snapshots.push_back(std::move(v));
    }
  }
  std::vector<VersionInfo> versions = branch_heads(store);
  std::move(snapshots.begin(), snapshots.end(), std::back_inserter(versions));
  return versions;
}

std::vector<VersionInfo> versions_in_store(const Store& store, const LogArguments& arguments) {
  if (arguments.line) return line_of(store, resolve_version(store, *arguments.line));
  const bool chosen_otherwise =
      arguments.graph || !arguments.text.empty() || arguments.since || arguments.until;
  if (arguments.most && !chosen_otherwise) {
    if (auto newest = newest_versions(store, *arguments.most)) return std::move(*newest);
  }
  return store.versions();
}

// Puts the commits of each branch behind its head, which is newer.
void add_commits(const Store& store, std::vector<VersionInfo>& versions) {
  std::vector<VersionInfo> all;
  for (VersionInfo& version : versions) {
    std::vector<VersionInfo> commits;
    if (version.is_branch) commits = commits_of(store, version.name);
    all.push_back(std::move(version));
    std::move(commits.begin(), commits.end(), std::back_inserter(all));
  }
  versions = std::move(all);
}

// Of a key or a root: enough to tell them apart.
std::string short_hex(std::span<const std::byte> bytes) { return base::hex(bytes.first(8)); }

// Those of the snapshots; a branch's head has none.
void print_signatures(Output& out, const std::vector<VersionInfo>& versions) {
  using Align = Table::Align;
  Table table({{"version", Align::left},
               {"number", Align::right},
               {"key", Align::left},
               {"root", Align::left},
               {"signed on", Align::left}});
  for (const VersionInfo& v : versions) {
    if (v.is_branch) continue;
    if (!v.signature) {
      table.add({printable(v.name), "", "not signed", "", ""});
      continue;
    }
    const Signature& s = *v.signature;
    table.add({printable(v.name), std::to_string(s.number), short_hex(s.key), short_hex(s.root),
               printable(s.parent)});
  }
  table.print(out);
}

int run_log(Context& context, LogArguments arguments) {
  arguments.store = url_at_time(arguments.store, arguments.at);
  const bool is_remote = remote::is_remote_url(arguments.store);
  std::vector<VersionInfo> versions;
  if (is_remote) {
    versions = versions_at_remote(arguments);
    sort_newest_first(versions);
  } else {
    const Store store = Store::open(arguments.store);
    versions = versions_in_store(store, arguments);
    sort_newest_first(versions);
    if (arguments.commits) add_commits(store, versions);
  }
  const bool any = !versions.empty();
  keep_wanted(arguments, versions);
  if (arguments.signatures && !context.json) {
    print_signatures(context.out, versions);
  } else if (arguments.graph && !context.json) {
    print_graph(context, versions, arguments.names_only);
  } else {
    print_versions(context, arguments.store, versions, arguments.names_only);
  }
  if (any || arguments.names_only) return kExitOk;
  if (is_remote) {
    context.explain(arguments.store + " has no version yet: vellum push sends the first" +
                    advice_on_older(arguments.store));
  } else {
    context.explain(
        fmt::format("{} has no version yet: vellum import, backup or run, or a program with the "
                    "library, creates the first",
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
  command->add_option("BRANCH", arguments->line, "List only the line of this branch or snapshot");
  CLI::Option* const graph =
      command->add_flag("--graph", arguments->graph, "Draw the ancestry of the versions");
  command
      ->add_flag("--commits", arguments->commits,
                 "Also list the commits that can be read, as BRANCH@N")
      ->excludes(graph);
  command
      ->add_flag("--signatures", arguments->signatures,
                 "List the signatures of the snapshots, without checking them")
      ->excludes(graph);
  command->add_option("-n,--number", arguments->most, "List only the first N versions")
      ->type_name("N");
  command
      ->add_option("--grep", arguments->text,
                   "List only versions with this text in their name or message")
      ->type_name("TEXT");
  command
      ->add_option("--since", arguments->since,
                   "List only versions from this time on: 2026-11-24, yesterday, '3 days ago'")
      ->type_name("TIME");
  command->add_option("--until", arguments->until, "List only versions up to this time")
      ->type_name("TIME");
  command
      ->add_option("--at", arguments->at,
                   "Of a remote in a bucket with versions: list it as it was at this time")
      ->type_name("TIME");
  command->add_flag("--names", arguments->names_only, "List only names, one on each line")
      ->excludes(command->get_option("--signatures"));
}

}  // namespace vellum::cli
