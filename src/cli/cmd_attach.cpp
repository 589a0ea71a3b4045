// cli/cmd_attach.cpp: vellum attach: records what a plain file holds now, and whose image it is.
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/exit_status.hpp"

namespace vellum::cli {
namespace {

struct AttachArguments {
  std::string store;
  std::string branch;
  std::string file;
  std::string message;
  std::optional<std::string> snapshot;
};

// The file itself behind links: the library follows none.
std::string require_file_with_content(const std::string& file) {
  std::error_code problem;
  const auto path = std::filesystem::canonical(file, problem);
  if (problem == std::errc::no_such_file_or_directory) {
    throw Error(Errc::not_found, fmt::format("{}: no such file", file));
  }
  const auto bytes = problem ? 0 : std::filesystem::file_size(path, problem);
  if (problem) throw Error(Errc::invalid_argument, fmt::format("{}: {}", file, problem.message()));
  if (bytes == 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("{} is empty: there is nothing to attach", file));
  }
  return path.string();
}

void require_free_snapshot(const Store& store, const AttachArguments& arguments) {
  if (!arguments.snapshot) return;
  require_good_name(*arguments.snapshot);
  if (*arguments.snapshot == arguments.branch || store.contains(*arguments.snapshot)) {
    throw Error(Errc::already_exists,
                fmt::format("the name '{}' is taken in {}", *arguments.snapshot, store.path()));
  }
}

int run_attach(Context& context, const AttachArguments& arguments) {
  require_good_message(arguments.message);
  Store store = Store::open(arguments.store);
  require_free_snapshot(store, arguments);
  RegionOptions options;
  options.image_path = require_file_with_content(arguments.file);
  Region region = store.open_or_create_region(arguments.branch, 1, options);
  const CommitReport report = arguments.snapshot
                                  ? region.snapshot(*arguments.snapshot, arguments.message)
                                  : region.commit(arguments.message);
  region.close();
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

void add_attach(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<AttachArguments>();
  CLI::App* command = add_command(
      app, context, "attach", "Record what a plain file holds now, which stays the branch's image",
      arguments->store, [&context, arguments] { return run_attach(context, *arguments); });
  command->add_option("BRANCH", arguments->branch, "The branch; made when it does not exist")
      ->required();
  command->add_option("FILE", arguments->file, "The file; it is not changed")->required();
  command->add_option("-m,--message", arguments->message, "Why, for log and show")
      ->type_name("MSG");
  command->add_option("--snapshot", arguments->snapshot, "Keep the result under this name")
      ->type_name("NAME");
}

}  // namespace vellum::cli
