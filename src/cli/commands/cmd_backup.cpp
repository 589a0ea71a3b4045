// cli/commands/cmd_backup.cpp: vellum backup: records a file's current content, while other
// programs may have it open.
#include <memory>

#include "base/fail.hpp"
#include "cli/files/backup_source.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/terminal/arguments.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "region/api/import.hpp"

namespace vellum::cli {
namespace {

struct BackupArguments : IngestFileArguments {
  std::string name;
  bool stopped = false;
};

[[noreturn]] void refuse_live(const BackupArguments& arguments, const std::string& branch) {
  fail(Errc::busy,
       "{}: a program has it open under vellum run, as branch '{}'; "
       "keep its content with: vellum snapshot {} {} {}",
       arguments.file, branch, arguments.store, arguments.name, branch);
}

// After a crash of `vellum run`, the file may be older than the branch, or a mix of states.
void repair_image(const BackupArguments& arguments, Store& store) {
  const std::string path = regular_file(arguments.file);
  for (const std::string& branch : branches_with_image(store, path)) {
    if (!store.branch_image(branch)->in_use) continue;
    try {
      store.open_region(branch, image_at(path)).close();
    } catch (const Error& error) {
      if (error.code() == Errc::busy) refuse_live(arguments, branch);
      if (error.code() != Errc::already_exists) throw;  // another file: read as it is
    }
  }
}

int run_backup(Context& context, BackupArguments arguments) {
  store_first(arguments.store, arguments.file);
  arguments.snapshot = arguments.name;
  arguments.file = data_file(arguments.file);
  require_good_name(arguments.name);
  require_good_name(arguments.branch);
  require_two_names(arguments.name, arguments.branch);
  require_no_companions(regular_file(arguments.file));  // before a store is created for it
  Store store = Store::open_or_create(arguments.store);
  require_valid_names(store, arguments);
  repair_image(arguments, store);
  CommitReport report;
  {
    const auto source = open_backup_source(arguments.file, arguments.stopped);
    ProgressMeter meter("backup", context.progress_wanted());
    report = api::import_content(store, arguments.branch, *source, arguments.message,
                                 meter.callback(), snapshot_of(arguments));
  }
  report_taken(context, store, arguments, report);
  return kExitOk;
}

}  // namespace

void add_backup(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<BackupArguments>();
  arguments->branch = "main";
  CLI::App* command = add_command(
      app, context, "backup", "Record the current content of a file, also while LMDB writes it",
      arguments->store, [&context, arguments] { return run_backup(context, *arguments); });
  command->get_option("STORE")->description("The store; it is created if it does not exist");
  command->add_option("FILE", arguments->file, "The file, or a directory with data.mdb")
      ->required();
  command->add_option("--name", arguments->name, "The new snapshot's name")
      ->required()
      ->type_name("NAME");
  command->add_option("-m,--message", arguments->message, "The message that log and show print")
      ->type_name("MSG");
  command
      ->add_option("--branch", arguments->branch,
                   "The branch; it is created if it does not exist (default: main)")
      ->type_name("NAME");
  command->add_flag("--stopped", arguments->stopped,
                    "Read the file even if programs have it open; none may write it meanwhile");
}

}  // namespace vellum::cli
