// cli/cmd_import.cpp: vellum import: makes a branch's content that of a plain file.
#include "cli/exit_status.hpp"
#include "cli/progress.hpp"
#include "cli/take_file.hpp"

namespace vellum::cli {
namespace {

CommitReport import_file(Context& context, Store& store, const TakeFileArguments& arguments) {
  const std::string file = regular_file(arguments.file);
  ProgressMeter meter("import", context.progress_wanted());
  return store.import_file(arguments.branch, file, arguments.message, meter.callback());
}

int run_import(Context& context, const TakeFileArguments& arguments) {
  Store store = Store::open(arguments.store);
  require_takable(store, arguments);
  CommitReport report = import_file(context, store, arguments);
  if (arguments.snapshot) {
    // The writer's own snapshot, not Store::create_snapshot(): later versions then count from it as
    // their parent.
    const CommitReport kept =
        store.open_region(arguments.branch).snapshot(*arguments.snapshot, arguments.message);
    report.sequence = kept.sequence;
    report.bytes_written += kept.bytes_written;
  }
  report_taken(context, store, arguments, report);
  return kExitOk;
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  add_take_file_command(
      app, context, "import", "Make a branch's content that of a plain file", "The file to read",
      [&context](const TakeFileArguments& arguments) { return run_import(context, arguments); });
}

}  // namespace vellum::cli
