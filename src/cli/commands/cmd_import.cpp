// cli/commands/cmd_import.cpp: vellum import: imports a plain file into a branch, or a Metall
// datastore into a new datastore.
#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/import_metall.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/options/arguments.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "region/api/import.hpp"
#include "store/stream/content.hpp"

namespace vellum::cli {
namespace {

int run_import(Context& context, const IngestFileArguments& arguments) {
  if (arguments.branch.empty() || arguments.file.empty()) {
    fail(Errc::invalid_argument, "import needs BRANCH and FILE, or --metall DIR");
  }
  // What is refused leaves no new store behind.
  require_valid_names(arguments);
  const std::string file = regular_file(arguments.file);
  require_no_companions(file);
  const auto in = base::posix_fs().open(file, base::OpenMode::read_only);
  Store store = Store::open_or_create(arguments.store);
  require_free_name(store, arguments);
  const auto content = store::content_of(*in);
  ProgressMeter meter("import", context.progress_wanted());
  const CommitReport report =
      api::import_content(store, arguments.branch, *content, arguments.message, meter.callback(),
                          snapshot_of(arguments));
  report_taken(context, store, arguments, report);
  return kExitOk;
}

int run_import_metall(Context& context, const IngestFileArguments& arguments,
                      const std::string& from) {
  require_good_message(arguments.message);
  if (arguments.snapshot) require_good_name(*arguments.snapshot);
  MetallImport imported;
  {
    ProgressMeter meter("import", context.progress_wanted());
    imported = import_metall(from, arguments.store, arguments.message, meter.callback());
  }
  if (arguments.snapshot) {
    Store::open(arguments.store + "/store")
        .create_snapshot(*arguments.snapshot, "main", arguments.message);
  }
  context.report(
      Json{{"datastore", arguments.store},
           {"metall", from},
           {"segment_bytes", imported.segment_bytes},
           {"data_bytes", imported.data_bytes},
           {"books", imported.metadata_files},
           {"bytes_written", imported.commit.bytes_written},
           {"snapshot", arguments.snapshot ? Json(*arguments.snapshot) : Json(nullptr)}},
      fmt::format("datastore {}: {} of data and {} of Metall's own, {} written{}", arguments.store,
                  human_bytes(imported.data_bytes), counted(imported.metadata_files, "file"),
                  human_bytes(imported.commit.bytes_written),
                  arguments.snapshot ? fmt::format("; snapshot '{}'", *arguments.snapshot) : ""));
  return kExitOk;
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  auto metall = std::make_shared<std::string>();
  CLI::App* const command = add_ingest_file_command(
      app, context, "import", "Import a plain file into a branch", "The file to read",
      [&context, metall](const IngestFileArguments& arguments) {
        return metall->empty() ? run_import(context, arguments)
                               : run_import_metall(context, arguments, *metall);
      });
  command->get_option("STORE")->description("The store; it is created if it does not exist");
  CLI::Option* const from = command
                                ->add_option("--metall", *metall,
                                             "Create the new datastore STORE from this Metall "
                                             "datastore, instead of BRANCH and FILE")
                                ->type_name("DIR");
  // Required unless --metall is given, which excludes them.
  for (const char* name : {"BRANCH", "FILE"}) {
    command->get_option(name)->required(false);
    from->excludes(command->get_option(name));
  }
}

}  // namespace vellum::cli
