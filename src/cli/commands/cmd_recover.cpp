// cli/commands/cmd_recover.cpp: vellum recover: restores a plain file to its last atomic msync.
#include <vellum/atomic_file.hpp>

#include <memory>

#include "base/fail.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

struct RecoverArguments {
  std::string file;
  RecoveryOptions options;
};

Json report_json(const std::string& file, const RecoveryReport& report) {
  Json kept;  // null: the journal is removed
  if (!report.kept_as.empty()) kept = report.kept_as;
  return Json{
      {"file", file},          {"journal", report.journal},           {"commits", report.commits},
      {"bytes", report.bytes}, {"commits_lost", report.commits_lost}, {"kept_as", std::move(kept)}};
}

std::string report_text(const std::string& file, const RecoveryReport& report) {
  if (!report.journal) return fmt::format("{} has no journal: nothing to recover", file);
  return fmt::format("{}: applied {} with {} to the file; the journal is {}", file,
                     counted(report.commits, "commit"), human_bytes(report.bytes),
                     report.kept_as.empty() ? "removed" : "kept as " + report.kept_as);
}

int run_recover(Context& context, const RecoverArguments& arguments) {
  static_cast<void>(whole_path(arguments.file));  // refuses what is no file
  const RecoveryReport report = AtomicFile::recover(arguments.file, arguments.options);
  const Json json = report_json(arguments.file, report);
  if (report.damage.empty() || !context.json) {
    context.report(json, report_text(arguments.file, report));
  } else {
    context.begin_object(json);
  }
  if (report.damage.empty()) return kExitOk;
  // Scripts see the loss, even if other commits were saved.
  fail(Errc::corrupted, "{}", report.damage);
}

}  // namespace

void add_recover(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RecoverArguments>();
  CLI::App* command =
      app.add_subcommand("recover", "Restore a plain file to its last atomic msync after a crash");
  command->add_option("FILE", arguments->file, "The file, next to its journal")->required();
  command->add_flag("--copied", arguments->options.copied,
                    "Accept a journal of another file: both were copied together");
  command->add_flag("--corrupted", arguments->options.corrupted,
                    "Apply the commits before the damage in a journal to the file, and keep the "
                    "journal as FILE.vellum-journal.corrupted");
  command->callback([&context, arguments] {
    context.action = [&context, arguments] { return run_recover(context, *arguments); };
  });
}

}  // namespace vellum::cli
