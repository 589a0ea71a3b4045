// cli/cmd_run.cpp: vellum run: an unmodified program whose file is a branch's image.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/exit_status.hpp"
#include "cli/private_directory.hpp"
#include "cli/progress.hpp"
#include "cli/run_program.hpp"
#include "cli/take_file.hpp"
#include "shim/config.hpp"

namespace vellum::cli {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  std::string store;
  std::vector<std::string> files;
  std::optional<std::string> branch;
  std::optional<std::string> version;
  std::uint64_t every_commits = 0;
  double every_seconds = 0;
  std::vector<std::string> command;
};

// One file is branch main's unless another is named; several are of branches with their names.
std::vector<shim::Target> targets_of(const RunArguments& arguments) {
  std::vector<shim::Target> out;
  for (const std::string& file : arguments.files) {
    if (shim::is_pattern(file)) {
      out.push_back({file, {}, {}});
      continue;
    }
    const std::string path = whole_path(file);
    const bool one = arguments.files.size() == 1;
    out.push_back(
        {path, one ? arguments.branch.value_or("main") : fs::path(path).filename().string(), {}});
    require_good_name(out.back().branch);
    for (std::size_t i = 0; i + 1 < out.size(); ++i)
      if (out[i].branch == out.back().branch)
        throw Error(Errc::invalid_argument, fmt::format("{} and {} would be one branch: '{}'",
                                                        out[i].path, path, out.back().branch));
  }
  if (arguments.branch && (out.size() != 1 || out[0].branch.empty()))
    throw Error(Errc::invalid_argument, "--branch is for one --file, and no pattern");
  return out;
}

bool has_content(const std::string& path) {
  std::error_code problem;
  const auto bytes = fs::file_size(path, problem);
  return !problem && bytes != 0;
}

// What the file holds now is the branch's, so that the program need not wait for that; and what a
// crash has left in it is mended. A file that is not there yet is made by the program.
void bring_up_to_date(Context& context, Store& store, const shim::Target& target) {
  const bool known = store.contains(target.branch);
  if (!known && !has_content(target.path)) return;
  if (!known) {
    ProgressMeter meter("import", context.progress_wanted());
    store.import_file(target.branch, target.path, "as it was before the first run",
                      meter.callback());
  }
  commit_as_found(store, target.branch, target.path);
}

// A program that was killed may have left the file behind its last commit.
bool mend(Store& store, const std::string& branch, const RegionOptions& options) {
  try {
    if (store.contains(branch)) store.open_region(branch, options).close();
    return true;
  } catch (const Error& error) {
    fmt::print(stderr, "vellum: branch '{}': {}\n", branch, error.what());
    return error.code() == Errc::busy;  // of another process that the program has started
  }
}

// The branches of files that were found by a pattern. Where they are, they know.
std::vector<std::string> branches_of_patterns(const Store& store) {
  std::vector<std::string> out;
  for (const VersionInfo& version : store.versions())
    if (version.is_branch && version.name.front() == '+') out.push_back(version.name);
  return out;
}

// A file that the program has removed stays so.
bool was_removed(const std::string& path) {
  std::error_code problem;
  return !path.empty() && fs::status(path, problem).type() == fs::file_type::not_found;
}

bool mend_all(Store& store, const std::vector<shim::Target>& targets) {
  bool mended = true, patterns = false;
  for (const shim::Target& target : targets) {
    patterns = patterns || target.branch.empty();
    if (target.branch.empty() || was_removed(target.path)) continue;
    mended = mend(store, target.branch, image_at(target.path)) && mended;
  }
  if (!patterns) return mended;
  RegionOptions where_it_was;
  where_it_was.engine = Engine::mapped;
  for (const std::string& branch : branches_of_patterns(store))
    if (!was_removed(shim::path_of_branch(branch)))
      mended = mend(store, branch, where_it_was) && mended;
  return mended;
}

// Keeps what the last commit of each branch was, under the name that the library gives, too. A
// version that has a name already needs no other.
void keep_head(Store& store, const std::string& branch) {
  if (!store.contains(branch)) return;
  const VersionInfo head = store.version(branch);
  const std::string name = shim::snapshot_name(branch, head.sequence);
  if (head.sequence != 0 && !store.contains(name)) store.create_snapshot(name, branch);
}

void keep_heads(Store& store, const std::vector<shim::Target>& targets) noexcept {
  try {
    for (const shim::Target& target : targets) {
      if (!target.branch.empty()) {
        keep_head(store, target.branch);
        continue;
      }
      for (const std::string& branch : branches_of_patterns(store)) keep_head(store, branch);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "vellum: no snapshot: {}\n", error.what());
  }
}

std::string lines(const std::vector<shim::Target>& targets, std::string shim::Target::* member) {
  std::string out;
  for (const shim::Target& target : targets) out += target.*member + "\n";
  return out;
}

std::map<std::string, std::string> environment_for(const RunArguments& arguments,
                                                   const std::string& store,
                                                   const std::vector<shim::Target>& targets) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string library = shim_library();
  if (library.find_first_of(": ") != std::string::npos)
    throw Error(
        Errc::unsupported,
        fmt::format("{}: the dynamic linker takes no path with a space or a colon", library));
  return {{"LD_PRELOAD", before == nullptr || *before == '\0' ? library : library + ":" + before},
          {shim::kStoreVariable, store},
          {shim::kFilesVariable, lines(targets, &shim::Target::path)},
          {shim::kBranchesVariable, lines(targets, &shim::Target::branch)},
          {shim::kCopiesVariable, arguments.version ? lines(targets, &shim::Target::copy) : ""},
          {shim::kEveryVariable, fmt::format("{}", arguments.every_commits)}};
}

int run_old_version(Context& context, const RunArguments& arguments,
                    std::vector<shim::Target> targets) {
  if (targets.size() != 1 || targets[0].branch.empty())
    throw Error(Errc::invalid_argument, "--version is for one --file");
  const Store store = Store::open(arguments.store);
  const PrivateDirectory directory(fs::temp_directory_path() / "vellum-run-");
  targets[0].copy = (directory.path() / fs::path(targets[0].path).filename()).string();
  {
    ProgressMeter meter("export", context.progress_wanted());
    store.export_file(*arguments.version, targets[0].copy, meter.callback());
  }
  RunningProgram program;
  program.command = arguments.command;
  program.environment = environment_for(arguments, store.path(), targets);
  program.on_tick = [] {};
  return run_program(program);
}

int run_live(Context& context, const RunArguments& arguments,
             const std::vector<shim::Target>& targets) {
  Store store = Store::open_or_create(arguments.store);
  for (const shim::Target& target : targets)
    if (!target.branch.empty()) bring_up_to_date(context, store, target);
  RunningProgram program;
  program.command = arguments.command;
  program.environment = environment_for(arguments, store.path(), targets);
  program.period = std::chrono::milliseconds(
      static_cast<std::chrono::milliseconds::rep>(arguments.every_seconds * 1000));
  program.on_tick = [&] { keep_heads(store, targets); };
  const int status = run_program(program);
  const bool mended = mend_all(store, targets);
  return status == 0 && !mended ? kExitOther : status;
}

int run(Context& context, const RunArguments& arguments) {
  if (arguments.command.empty())
    throw Error(Errc::invalid_argument,
                "run needs a program: vellum run --store STORE --file FILE -- PROGRAM ARGUMENTS");
  const auto targets = targets_of(arguments);
  preloadable_program(arguments.command[0]);
  return arguments.version ? run_old_version(context, arguments, targets)
                           : run_live(context, arguments, targets);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Run a program whose file gets atomic msync and versions, as it is");
  command->add_option("--store", arguments->store, "The store; made when it does not exist")
      ->required()
      ->type_name("STORE");
  command
      ->add_option("--file", arguments->files,
                   "The file that the program works on, or a pattern; repeatable")
      ->required()
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--branch", arguments->branch, "Of one file; main unless told")
      ->type_name("NAME");
  command->add_option("--snapshot-every-commits", arguments->every_commits,
                      "Keep every Nth commit, as BRANCH-SEQUENCE");
  command
      ->add_option("--snapshot-every-seconds", arguments->every_seconds,
                   "Keep what is new about as often; SIGUSR1 to this process does it once")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--version", arguments->version,
                   "The program reads this version of its file, and writes nothing")
      ->type_name("VERSION");
  command->footer("-- PROGRAM [ARGUMENTS]\n  The program to run. The exit status is its own.");
  command->callback([&context, arguments] {
    arguments->command = context.program;
    context.action = [&context, arguments] { return run(context, *arguments); };
  });
}

}  // namespace vellum::cli
