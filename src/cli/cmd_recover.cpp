// cli/cmd_recover.cpp: vellum recover: a plain file as its last atomic msync left it.
#include <vellum/atomic_file.hpp>

#include <memory>

#include "cli/command.hpp"
#include "cli/exit_status.hpp"

namespace vellum::cli {
namespace {

struct RecoverArguments {
  std::string file;
  bool copied = false;
};

int run_recover(Context& context, const RecoverArguments& arguments) {
  const RecoveryReport report = AtomicFile::recover(arguments.file, arguments.copied);
  context.report(Json{{"file", arguments.file},
                      {"journal", report.journal},
                      {"commits", report.commits},
                      {"bytes", report.bytes}},
                 !report.journal
                     ? fmt::format("{} has no journal: nothing to recover", arguments.file)
                     : fmt::format("{}: {} brought to the file, {} stored by them; the journal is "
                                   "removed",
                                   arguments.file, counted(report.commits, "commit"),
                                   human_bytes(report.bytes)));
  return kExitOk;
}

}  // namespace

void add_recover(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RecoverArguments>();
  CLI::App* command = app.add_subcommand(
      "recover", "Make a plain file what its last atomic msync left, after a crash");
  command->add_option("FILE", arguments->file, "The file, beside its journal")->required();
  command->add_flag("--copied", arguments->copied,
                    "File and journal were copied together: take a journal made for another file");
  command->callback([&context, arguments] {
    context.action = [&context, arguments] { return run_recover(context, *arguments); };
  });
}

}  // namespace vellum::cli
