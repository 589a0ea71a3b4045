// cli/cmd_import.cpp: vellum import: makes a branch's content that of a plain file.
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/exit_status.hpp"
#include "cli/progress.hpp"

namespace vellum::cli {
namespace {

struct ImportArguments {
  std::string store;
  std::string branch;
  std::string file;
  std::string message;
  std::optional<std::string> snapshot;
};

// A snapshot that cannot be made must not leave the commit behind.
void require_snapshot_possible(const Store& store, const std::string& name,
                               const std::string& branch) {
  require_good_name(name);
  if (name == branch || store.contains(name)) {
    throw Error(
        Errc::already_exists,
        fmt::format("the name '{}' is taken in {}; nothing was imported", name, store.path()));
  }
}

// The file itself behind links: the library follows none. What is no regular file has no content to
// import.
std::string require_regular_file(const std::string& file) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(file, problem);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw Error(Errc::not_found, fmt::format("{}: no such file", file));
  }
  if (problem) {
    throw Error(Errc::io, fmt::format("{}: {}", file, problem.message()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    throw Error(Errc::invalid_argument, fmt::format("{}: not a regular file", file));
  }
  return std::filesystem::canonical(file).string();
}

CommitReport import_file(Context& context, Store& store, const ImportArguments& arguments) {
  const std::string file = require_regular_file(arguments.file);
  ProgressMeter meter("import", context.progress_wanted());
  return store.import_file(arguments.branch, file, arguments.message, meter.callback());
}

int run_import(Context& context, const ImportArguments& arguments) {
  require_good_message(arguments.message);
  Store store = Store::open(arguments.store);
  if (arguments.snapshot) {
    require_snapshot_possible(store, *arguments.snapshot, arguments.branch);
  }
  CommitReport report = import_file(context, store, arguments);
  if (arguments.snapshot) {
    // The writer's own snapshot, not Store::create_snapshot(): later versions then count from it as
    // their parent.
    const CommitReport kept =
        store.open_region(arguments.branch).snapshot(*arguments.snapshot, arguments.message);
    report.sequence = kept.sequence;
    report.bytes_written += kept.bytes_written;
  }
  context.report(
      Json{{"store", store.path()},
           {"branch", arguments.branch},
           {"file", arguments.file},
           {"sequence", report.sequence},
           {"pages_changed", report.pages_changed},
           {"bytes_written", report.bytes_written},
           {"snapshot", arguments.snapshot ? Json(*arguments.snapshot) : Json(nullptr)}},
      fmt::format("branch '{}' is at commit {}: {} changed, {} written{}", arguments.branch,
                  report.sequence, counted(report.pages_changed, "page"),
                  human_bytes(report.bytes_written),
                  arguments.snapshot ? fmt::format("; snapshot '{}'", *arguments.snapshot) : ""));
  return kExitOk;
}

}  // namespace

void add_import(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command = add_command(
      app, context, "import", "Make a branch's content that of a plain file", arguments->store,
      [&context, arguments] { return run_import(context, *arguments); });
  command->add_option("BRANCH", arguments->branch, "The branch; made when it does not exist")
      ->required();
  command->add_option("FILE", arguments->file, "The file to read")->required();
  command->add_option("-m,--message", arguments->message, "Why, for log and show")
      ->type_name("MSG");
  command->add_option("--snapshot", arguments->snapshot, "Keep the result under this name")
      ->type_name("NAME");
}

}  // namespace vellum::cli
