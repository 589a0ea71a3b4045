// cli/commands/cmd_verify.cpp: vellum verify: checks for damage, and names the affected versions.
#include <memory>
#include <set>

#include "base/fail.hpp"
#include "cli/remote/remote_commands.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

struct VerifyArguments {
  std::string store, from, at;
  bool read_data = false;
};

VerifyReport verify(Context& context, const Store& store, bool read_data) {
  ProgressMeter meter("verify", context.progress_wanted());
  return store.verify({read_data}, meter.callback());
}

std::set<std::string> versions_hurt(const VerifyReport& report) {
  std::set<std::string> hurt;
  for (const Damage& damage : report.damages) {
    hurt.insert(damage.versions.begin(), damage.versions.end());
  }
  return hurt;
}

Json report_json(const Store& store, const VerifyReport& report, bool read_data) {
  Json damages = Json::array();
  for (const Damage& damage : report.damages) {
    damages.push_back(
        Json{{"object", damage.object}, {"reason", damage.reason}, {"versions", damage.versions}});
  }
  return Json{{"store", store.path()},           {"ok", report.damages.empty()},
              {"read_data", read_data},          {"versions", report.versions},
              {"packs", report.packs},           {"records", report.records},
              {"bytes_read", report.bytes_read}, {"damages", std::move(damages)}};
}

void print_damage(Output& out, const Damage& damage) {
  out.print_text("corrupted  {}: {}\n", printable(damage.object), printable(damage.reason));
  std::string versions;
  for (const std::string& version : damage.versions) {
    versions += (versions.empty() ? "" : ", ") + printable(version);
  }
  out.print_text("  affects  {}\n", versions.empty() ? "no version" : versions);
}

void print_text(Context& context, const VerifyReport& report) {
  if (context.quiet) {
    return;
  }
  for (const Damage& damage : report.damages) {
    print_damage(context.out, damage);
  }
  context.out.print_text("checked {}, {}, {}; read {}\n", counted(report.versions, "version"),
                         counted(report.packs, "pack"), counted(report.records, "record"),
                         human_bytes(report.bytes_read));
}

int run_verify(Context& context, const VerifyArguments& arguments) {
  if (remote::is_remote_url(arguments.store)) {
    return verify_remote(context, url_at_time(arguments.store, arguments.at), arguments.read_data,
                         arguments.from);
  }
  if (!arguments.from.empty()) {
    fail(Errc::invalid_argument, "--from is for a remote, given by its URL, and not for a store");
  }
  url_at_time(arguments.store, arguments.at);
  const Store store = Store::open(arguments.store);
  const VerifyReport report = verify(context, store, arguments.read_data);
  if (!context.json) {
    print_text(context, report);
  } else if (report.damages.empty()) {
    context.out.print_json(report_json(store, report, arguments.read_data));
  } else {
    context.begin_object(report_json(store, report, arguments.read_data));
  }
  if (!report.damages.empty()) {
    fail(Errc::corrupted, "{}: {}, {} affected", store.path(),
         counted(report.damages.size(), "corrupted object"),
         counted(versions_hurt(report).size(), "version"));
  }
  return kExitOk;
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = add_command(
      app, context, "verify", "Check for damage, and name the affected versions", arguments->store,
      [&context, arguments] { return run_verify(context, *arguments); });
  command->add_flag("--read-data", arguments->read_data,
                    "Read and check every byte that a version needs, not only the structure");
  command
      ->add_option("--from", arguments->from,
                   "For a remote, given by its URL: say what this store could mend")
      ->type_name("STORE");
  command
      ->add_option("--at", arguments->at,
                   "Of a remote in a bucket with versions: check it as it was at this time")
      ->type_name("TIME");
}

}  // namespace vellum::cli
