// cli/commands/cmd_export.cpp: vellum export: writes a version as a plain file.
#include <filesystem>
#include <memory>

#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"

namespace vellum::cli {
namespace {

struct ExportArguments {
  std::string store;
  std::string version;
  std::string file;
};

int run_export(Context& context, ExportArguments arguments) {
  store_first(arguments.store, arguments.file);
  const Store store = Store::open(arguments.store);
  arguments.version = resolve_version(store, arguments.version);
  {
    require_replaceable(arguments.file);
    ProgressMeter meter("export", context.progress_wanted());
    store.export_file(arguments.version, arguments.file, meter.callback());
  }
  const std::uint64_t bytes = std::filesystem::file_size(arguments.file);
  context.report(Json{{"store", store.path()},
                      {"version", arguments.version},
                      {"file", arguments.file},
                      {"size_bytes", bytes}},
                 fmt::format("exported '{}' to {} ({})", arguments.version, arguments.file,
                             human_bytes(bytes)));
  return kExitOk;
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = add_command(
      app, context, "export", "Write a version as a plain sparse file", arguments->store,
      [&context, arguments] { return run_export(context, *arguments); });
  command->add_option("VERSION", arguments->version, "A branch (its head) or a snapshot")
      ->required();
  command->add_option("FILE", arguments->file, "The new file; must not exist")->required();
}

}  // namespace vellum::cli
