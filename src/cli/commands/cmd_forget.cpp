// cli/commands/cmd_forget.cpp: vellum forget: removes snapshots by age, according to rules.
#include <algorithm>
#include <memory>

#include <vellum/retention.hpp>

#include "base/fail.hpp"
#include "cli/options/arguments.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/table.hpp"
#include "region/api/snapshots_of.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct ForgetArguments {
  std::string store;
  std::string branch;
  std::string prefix;
  std::string hold;
  RetentionPolicy policy;
  bool dry_run = false;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

Json decision_json(const RetentionDecision& decision) {
  return Json{{"name", decision.version.name},
              {"branch", decision.version.branch},
              {"time", utc_time_full(decision.version.created_at)},
              {"kept_by", decision.kept_by}};
}

Json report_json(const std::string& place, const std::vector<RetentionDecision>& decisions,
                 bool dry_run) {
  Json kept = Json::array(), removed = Json::array();
  for (const RetentionDecision& decision : decisions) {
    (decision.kept_by.empty() ? removed : kept).push_back(decision_json(decision));
  }
  return Json{{"store", place},
              {"dry_run", dry_run},
              {"kept", std::move(kept)},
              {"removed", std::move(removed)}};
}

void print_text(Context& context, const std::vector<RetentionDecision>& decisions, bool dry_run) {
  if (context.quiet) {
    return;
  }
  using Align = Table::Align;
  using enum Table::Narrowing;
  Table table({{"", Align::left},
               {"name", Align::left, 4, cut},
               {"branch", Align::left, 2, cut},
               {"time", Align::left, 1, shorten_time},
               {"rules", Align::left, 3, cut}});
  std::size_t removed = 0;
  for (const RetentionDecision& d : decisions) {
    removed += d.kept_by.empty() ? 1 : 0;
    table.add({d.kept_by.empty() ? "remove" : "keep", printable(d.version.name),
               printable(d.version.branch), context.out.time(d.version.created_at),
               joined(d.kept_by)});
  }
  if (!decisions.empty()) {
    table.print(context.out);
  }
  context.out.print_text("{} {}, kept {}\n", dry_run ? "would remove" : "removed",
                         counted(removed, "snapshot"), decisions.size() - removed);
}

// A misspelt branch would keep everything, and nobody would know. A removed branch may have left
// snapshots.
void require_branch(const ForgetArguments& arguments, const std::vector<VersionInfo>& versions) {
  const auto is_of_it = [&](const VersionInfo& v) { return v.branch == arguments.branch; };
  if (!arguments.branch.empty() && std::none_of(versions.begin(), versions.end(), is_of_it))
    fail(Errc::not_found, "no branch '{}' in {}", arguments.branch, arguments.store);
}

std::vector<RetentionDecision> forget_in_store(const ForgetArguments& arguments) {
  Store store = Store::open(arguments.store);
  require_branch(arguments, store.versions());
  return forget(store, arguments.policy, {arguments.branch, arguments.prefix, arguments.dry_run});
}

// Removes all of them with one head.
std::vector<RetentionDecision> forget_at_remote(const ForgetArguments& arguments) {
  const RemoteByUrl place(arguments.store);
  const auto versions = versions_of(place.remote().newest_head().head);
  require_branch(arguments, versions);
  auto decisions = decide_retention(api::snapshots_of(versions, arguments.branch, arguments.prefix),
                                    arguments.policy);
  std::set<std::string> names;
  for (const RetentionDecision& decision : decisions) {
    if (decision.kept_by.empty()) names.insert(decision.version.name);
  }
  if (!arguments.dry_run) remove_at_remote(place, names, false);
  return decisions;
}

int run_forget(Context& context, const ForgetArguments& arguments) {
  const bool is_remote = remote::is_remote_url(arguments.store);
  if (!arguments.hold.empty()) {
    if (!is_remote) fail(Errc::invalid_argument, "{}: only a remote has holds", arguments.store);
    return forget_hold_at_remote(context, arguments.store, arguments.hold);
  }
  const auto decisions = is_remote ? forget_at_remote(arguments) : forget_in_store(arguments);
  if (context.json) {
    context.out.print_json(report_json(arguments.store, decisions, arguments.dry_run));
  } else {
    print_text(context, decisions, arguments.dry_run);
  }
  return kExitOk;
}

}  // namespace

void add_forget(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ForgetArguments>();
  CLI::App* command = add_command(
      app, context, "forget", "Remove snapshots, except those that a rule keeps", arguments->store,
      [&context, arguments] { return run_forget(context, *arguments); });
  add_retention_options(*command, arguments->policy);
  command->add_option("--branch", arguments->branch, "Consider only snapshots of this branch")
      ->type_name("NAME");
  command
      ->add_option("--prefix", arguments->prefix,
                   "Consider only snapshots whose names begin with this")
      ->type_name("TEXT");
  CLI::Option* dry_run = command->add_flag("--dry-run", arguments->dry_run,
                                           "Only list the snapshots that would be removed");
  command
      ->add_option("--hold", arguments->hold,
                   "At a remote: remove the hold of a lazy clone instead")
      ->type_name("HOLD")
      ->excludes(dry_run);
}

}  // namespace vellum::cli
