// cli/commands/cmd_attach.cpp: vellum attach: records a plain file's content, and the file as an
// image.
#include <filesystem>
#include <system_error>

#include "base/fail.hpp"
#include "cli/files/file_family.hpp"
#include "cli/files/ingest_file.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

std::string file_with_content(const std::string& file) {
  const std::string path = regular_file(file);
  std::error_code problem;
  const auto bytes = std::filesystem::file_size(path, problem);
  if (problem) fail(Errc::io, "{}: {}", file, problem.message());
  if (bytes == 0) {
    fail(Errc::invalid_argument, "{} is empty: nothing can be attached", file);
  }
  return path;
}

int run_attach(Context& context, const IngestFileArguments& arguments) {
  require_valid_names(arguments);
  Store store = Store::open(arguments.store);
  require_free_name(store, arguments);
  RegionOptions options;
  options.image.path = file_with_content(arguments.file);
  require_no_companions(options.image.path);
  Region region = store.open_or_create_region(arguments.branch, 1, options);
  const CommitReport report = arguments.snapshot
                                  ? region.snapshot(*arguments.snapshot, arguments.message)
                                  : region.commit(arguments.message);
  region.close();
  report_taken(context, store, arguments, report);
  return kExitOk;
}

}  // namespace

void add_attach(CLI::App& app, Context& context) {
  add_ingest_file_command(
      app, context, "attach",
      "Record the current content of a plain file, and use the file as the branch's image",
      "The file; it is not changed",
      [&context](const IngestFileArguments& arguments) { return run_attach(context, arguments); });
}

}  // namespace vellum::cli
