// cli/commands/cmd_repair.cpp: vellum repair: saves the intact parts of a corrupted store into a
// new one.
#include <algorithm>
#include <memory>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct RepairArguments {
  std::string store;
  std::string destination;
  std::string from;  // for a remote: a store that has the lost data
  RepairOptions options;
};

const char* kind_of(const SavedVersion& saved) { return saved.is_branch ? "branch" : "snapshot"; }

Json report_json(const std::string& path, const RepairReport& report) {
  Json saved = Json::array();
  for (const auto& s : report.saved) {
    saved.push_back(Json{{"name", s.name},
                         {"kind", kind_of(s)},
                         {"sequence", s.sequence},
                         {"region_bytes", s.region_bytes},
                         {"exact", s.exact},
                         {"origin", s.origin}});
  }
  Json lost = Json::array();
  for (const auto& l : report.lost) lost.push_back(Json{{"version", l.name}, {"reason", l.reason}});
  Json destination;  // null for a dry run
  if (!report.destination.empty()) destination = report.destination;
  return Json{{"store", path},
              {"destination", std::move(destination)},
              {"pages_written", report.pages_written},
              {"saved", std::move(saved)},
              {"lost", std::move(lost)}};
}

void print_text(Context& context, const RepairReport& report) {
  if (context.quiet) return;
  const bool dry = report.destination.empty();
  for (const auto& s : report.saved) {
    const std::string from =
        s.exact ? "" : fmt::format(": version {}, from {}", s.sequence, printable(s.origin));
    context.out.print_text("{}  {} '{}'{}\n", dry ? "can be saved" : "saved", kind_of(s),
                           printable(s.name), from);
  }
  for (const auto& l : report.lost) {
    context.out.print_text("lost  {}: {}\n", printable(l.name), printable(l.reason));
  }
  const auto exact = static_cast<std::uint64_t>(std::count_if(
      report.saved.begin(), report.saved.end(), [](const auto& s) { return s.exact; }));
  context.out.print_text("{} {}, {} from copies, {} lost{}\n", counted(exact, "version"),
                         dry ? "whole" : "saved", report.saved.size() - exact, report.lost.size(),
                         dry ? "" : "; the new store is " + printable(report.destination));
}

std::string default_destination(const std::string& store) {
  return base::without_end_slashes(store) + ".repaired";
}

int run_repair_of_remote(Context& context, const RepairArguments& arguments) {
  if (arguments.from.empty()) {
    fail(Errc::invalid_argument,
         "a remote is repaired from a store that has its versions: --from STORE");
  }
  if (!arguments.destination.empty() || arguments.options.include_removed ||
      arguments.options.dry_run) {
    fail(Errc::invalid_argument, "--to, --removed and --dry-run are for a store, not for a remote");
  }
  return repair_remote(context, arguments.store, arguments.from);
}

int run_repair(Context& context, const RepairArguments& arguments) {
  if (remote::is_remote_url(arguments.store)) return run_repair_of_remote(context, arguments);
  if (!arguments.from.empty()) {
    fail(Errc::invalid_argument, "--from is for a remote: give its URL instead of the store");
  }
  const std::string destination =
      arguments.destination.empty() ? default_destination(arguments.store) : arguments.destination;
  ProgressMeter meter("repair", context.progress_wanted());
  const RepairReport report =
      Store::repair(arguments.store, destination, arguments.options, meter.callback());
  if (!context.json) {
    print_text(context, report);
  } else if (report.lost.empty()) {
    context.out.print_json(report_json(arguments.store, report));
  } else {
    context.begin_object(report_json(arguments.store, report));
  }
  // Scripts see the loss, even if other versions were saved.
  if (!report.lost.empty()) {
    fail(Errc::corrupted, "{}: {} lost", arguments.store, counted(report.lost.size(), "version"));
  }
  return kExitOk;
}

}  // namespace

void add_repair(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RepairArguments>();
  CLI::App* command = add_command(
      app, context, "repair", "Save every intact version of a corrupted store into a new store",
      arguments->store, [&context, arguments] { return run_repair(context, *arguments); });
  command->add_option("--to", arguments->destination,
                      "The new store, which must not exist (default: STORE.repaired)");
  command
      ->add_option("--from", arguments->from,
                   "For a remote, given by its URL: a store that has the lost data")
      ->type_name("STORE");
  command->add_flag("--removed", arguments->options.include_removed,
                    "Also offer removed versions, as far as gc has not freed them yet");
  command->add_flag("--dry-run", arguments->options.dry_run,
                    "Report the versions that can be saved, and write nothing");
}

}  // namespace vellum::cli
