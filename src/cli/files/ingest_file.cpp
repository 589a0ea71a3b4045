#include "cli/files/ingest_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/fail.hpp"
#include "cli/options/arguments.hpp"
#include "region/api/version_names.hpp"

namespace vellum::cli {
namespace {

// Snapshots and branches share one namespace.
void require_two_names(const std::string& snapshot, const std::string& branch) {
  if (snapshot != branch) return;
  fail(Errc::invalid_argument, "snapshot and branch are both called '{}': give them two names",
       branch);
}

}  // namespace

CLI::App* add_ingest_file_command(CLI::App& app, Context& context, const std::string& name,
                                  const std::string& description, const std::string& of_file,
                                  std::function<int(const IngestFileArguments&)> run) {
  auto arguments = std::make_shared<IngestFileArguments>();
  CLI::App* command = add_command(app, context, name, description, arguments->store,
                                  [arguments, run = std::move(run)] {
                                    store_first(arguments->store, arguments->file);
                                    return run(*arguments);
                                  });
  command->add_option("BRANCH", arguments->branch, "The branch; it is created if it does not exist")
      ->required();
  command->add_option("FILE", arguments->file, of_file)->required();
  command->add_option("-m,--message", arguments->message, "The message that log and show print")
      ->type_name("MSG");
  command->add_option("--snapshot", arguments->snapshot, "Keep the result under this name")
      ->type_name("NAME");
  return command;
}

void require_valid_names(const IngestFileArguments& arguments) {
  require_good_message(arguments.message);
  require_good_name(arguments.branch);
  if (!arguments.snapshot) return;
  require_good_name(*arguments.snapshot);
  require_two_names(*arguments.snapshot, arguments.branch);
}

void require_free_name(const Store& store, const IngestFileArguments& arguments) {
  if (arguments.snapshot && store.contains(*arguments.snapshot)) {
    fail(Errc::already_exists, "the name '{}' is taken in {}; nothing was done",
         *arguments.snapshot, store.path());
  }
}

bool is_local_store(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(path) / "vellum.store", ignored);
}

void store_first(std::string& store, std::string& file) {
  if (!file.empty() && !is_local_store(store) && is_local_store(file)) store.swap(file);
}

std::string regular_file(const std::string& file) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(file, problem);
  if (status.type() == std::filesystem::file_type::not_found) {
    fail(Errc::not_found, "{}: no such file", file);
  }
  if (problem) fail(Errc::io, "{}: {}", file, problem.message());
  if (!std::filesystem::is_regular_file(status)) {
    fail(Errc::invalid_argument, "{}: not a regular file", file);
  }
  return std::filesystem::canonical(file).string();
}

std::string whole_path(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code problem;
  if (fs::exists(fs::status(file, problem))) return regular_file(file);
  if (fs::is_symlink(fs::symlink_status(file, problem)))
    fail(Errc::invalid_argument, "{}: a symbolic link that leads to no file", file);
  const fs::path path(file);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!path.has_filename() || !fs::is_directory(parent))
    fail(Errc::not_found, "{}: its directory does not exist", file);
  return (fs::canonical(parent) / path.filename()).string();
}

std::string data_file(const std::string& file) {
  const auto inside = std::filesystem::path(file) / "data.mdb";
  std::error_code problem;
  return std::filesystem::is_regular_file(inside, problem) ? inside.string() : file;
}

namespace {

constexpr std::string_view kEscaped = "file+";

}  // namespace

std::string branch_of_file(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  if (is_good_name(name) && !name.starts_with(kEscaped)) return name;
  std::string out(kEscaped);
  for (const char c : name) {
    const bool is_plain = is_name_byte(c) && c != '+';
    out += is_plain ? std::string(1, c) : fmt::format("+{:02x}", static_cast<unsigned char>(c));
  }
  require_good_name(out);
  return out;
}

std::string file_of_branch(const std::string& branch) {
  if (!branch.starts_with(kEscaped)) return branch;
  std::string out;
  for (std::size_t at = kEscaped.size(); at < branch.size(); ++at) {
    unsigned value = static_cast<unsigned char>(branch[at]);
    if (branch[at] == '+') {
      const char* const digits = branch.data() + at + 1;
      const auto [end, problem] = std::from_chars(digits, digits + 2, value, 16);
      if (at + 2 >= branch.size() || problem != std::errc() || end != digits + 2) return branch;
      at += 2;
    }
    if (value == 0 || value == '/') return branch;
    out += static_cast<char>(value);
  }
  return out.empty() || out == "." || out == ".." ? branch : out;
}

RegionOptions image_at(const std::string& path) {
  RegionOptions options;
  options.image.path = path;
  return options;
}

RegionOptions image_as_it_is(const std::string& path) {
  RegionOptions options = image_at(path);
  options.image.is_content = true;
  return options;
}

void commit_as_found(Store& store, const std::string& branch, const RegionOptions& image) {
  Region region = store.open_region(branch, image);
  region.commit("as the file was found");
  region.close();
}

std::vector<std::string> branches_with_image(const Store& store, const std::string& path) {
  std::vector<std::string> out;
  for (const VersionInfo& version : api::branch_heads(store)) {
    try {
      const auto image = store.branch_image(version.name);
      if (image && image->path == path) out.push_back(version.name);
    } catch (const Error& error) {
      if (error.code() != Errc::not_found) throw;  // removed meanwhile
    }
  }
  return out;
}

const std::string* snapshot_of(const IngestFileArguments& arguments) noexcept {
  return arguments.snapshot ? &*arguments.snapshot : nullptr;
}

void report_taken(Context& context, const Store& store, const IngestFileArguments& arguments,
                  const CommitReport& report) {
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
}

}  // namespace vellum::cli
