// cli/commands/cmd_run.cpp: vellum run: runs an unmodified program on files that are branches'
// images.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "base/files/real_path.hpp"
#include "cli/files/private_directory.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/snapshot_set.hpp"
#include "cli/options/arguments.hpp"
#include "cli/run/run_files.hpp"
#include "cli/run/run_program.hpp"
#include "cli/run/run_reports.hpp"
#include "cli/run/run_summary.hpp"
#include "cli/run/run_targets.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/progress.hpp"
#include "run/run/config.hpp"

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
  std::optional<std::string> snapshot;
  bool strict = false;
  bool no_gc = false;
  std::vector<std::string> command;
};

// Makes a snapshot of the last commit of each branch, with the name that the library also uses. A
// version that has this name already needs no other.
void keep_head(Store& store, const std::string& branch) {
  if (!store.contains(branch)) return;
  const VersionInfo head = store.version(branch);
  const std::string name = preload::snapshot_name(branch, head.sequence);
  if (head.sequence != 0 && !store.contains(name)) store.create_snapshot(name, branch);
}

void keep_heads(Store& store, const RunFiles& files) noexcept {
  try {
    for (const std::string& branch : files.branches()) keep_head(store, branch);
  } catch (const std::exception& error) {
    print_error(fmt::format("no snapshot: {}", error.what()));
  }
}

// What the run has made: a snapshot of its file, or a set. An error is the caller's: the files are
// as they should be.
bool keep_run(Store& store, const RunArguments& arguments, const RunFiles& files,
              const std::vector<preload::RunTarget>& targets) {
  if (!arguments.snapshot) return true;
  try {
    const std::vector<std::string> branches = files.branches();
    if (targets.size() == 1 && !targets[0].branch.empty()) {
      store.create_snapshot(*arguments.snapshot, targets[0].branch);
    } else if (branches.empty()) {
      fail(Errc::not_found, "the run has made no file");
    } else {
      create_set(store, *arguments.snapshot, branches, "");
    }
    return true;
  } catch (const Error& error) {
    print_error(fmt::format("no snapshot '{}': {}", *arguments.snapshot, error.what()));
    return false;
  }
}

// Before the program starts, as far as its branches are known.
void require_free_snapshot(const Store& store, const RunArguments& arguments,
                           const std::vector<preload::RunTarget>& targets) {
  if (!arguments.snapshot) return;
  std::vector<std::string> branches;
  if (targets.size() > 1) {
    for (const preload::RunTarget& target : targets)
      if (!target.branch.empty()) branches.push_back(target.branch);
  }
  require_free_set(store, *arguments.snapshot, branches);
  for (const preload::RunTarget& target : targets) {
    if (target.branch == *arguments.snapshot)
      fail(Errc::invalid_argument, "snapshot and branch are both called '{}': give them two names",
           target.branch);
  }
}

std::string lines(const std::vector<preload::RunTarget>& targets,
                  std::string preload::RunTarget::* member) {
  std::string out;
  for (const preload::RunTarget& target : targets) out += target.*member + "\n";
  return out;
}

std::map<std::string, std::string> environment_for(const RunArguments& arguments,
                                                   const std::string& store,
                                                   const std::vector<preload::RunTarget>& targets,
                                                   const RunReports& reports) {
  const char* before = std::getenv("LD_PRELOAD");
  std::string library = preload_library();
  if (library.find_first_of(": ") != std::string::npos)
    fail(Errc::unsupported, "{}: the dynamic linker accepts no path with a space or a colon",
         library);
  const std::string first = sanitizer_library(find_program(arguments.command[0]));
  if (!first.empty()) library = first + ":" + library;
  const char* asan = std::getenv("ASAN_OPTIONS");
  return {
      {"LD_PRELOAD", before == nullptr || *before == '\0' ? library : library + ":" + before},
      // For programs that this one starts: their sanitizer library is loaded after ours, which
      // works as well.
      {"ASAN_OPTIONS", fmt::format("{}{}verify_asan_link_order=0", asan != nullptr ? asan : "",
                                   asan != nullptr && *asan != '\0' ? ":" : "")},
      {preload::kStoreVariable, base::real_path(store)},  // the program may change its directory
      {preload::kFilesVariable, lines(targets, &preload::RunTarget::path)},
      {preload::kBranchesVariable, lines(targets, &preload::RunTarget::branch)},
      {preload::kCopiesVariable,
       arguments.version ? lines(targets, &preload::RunTarget::copy) : ""},
      {preload::kEveryVariable, fmt::format("{}", arguments.every_commits)},
      {preload::kNoGcVariable, arguments.no_gc ? "1" : ""},
      {preload::kRecordVariable, reports.variable()}};
}

// The program's own status takes precedence over the state of its files.
int status_of(const RunArguments& arguments, int program_status, const RunOutcome& outcome) {
  if (program_status != 0) return program_status;
  if (!outcome.repaired) return kExitOther;
  return arguments.strict && !outcome.problems.empty() ? kExitBypassed : kExitOk;
}

fs::path temporary_directory() {
  std::error_code problem;
  const fs::path path = fs::temp_directory_path(problem);
  if (!problem) return path;
  const char* const named = std::getenv("TMPDIR");
  fail(Errc::not_found, "no directory for temporary files (TMPDIR={}): {}",
       named != nullptr ? named : "", problem.message());
}

int run_old_version(Context& context, const RunArguments& arguments,
                    std::vector<preload::RunTarget> targets) {
  if (targets.size() != 1 || targets[0].branch.empty())
    fail(Errc::invalid_argument, "--version is for one --file");
  const Store store = Store::open(arguments.store);
  const std::string version = resolve_version(store, *arguments.version);
  const PrivateDirectory directory(temporary_directory() / "vellum-run-");
  targets[0].copy = (directory.path() / fs::path(targets[0].path).filename()).string();
  {
    ProgressMeter meter("export", context.progress_wanted());
    store.export_file(version, targets[0].copy, meter.callback());
  }
  const RunReports reports;
  RunningProgram program;
  program.command = arguments.command;
  program.environment = environment_for(arguments, store.path(), targets, reports);
  program.on_tick = [] {};
  program.held_below = directory.path().string();
  program.quiet = context.quiet;
  const int status = run_program(program);
  RunOutcome outcome;
  if (reports.complete() && !reports.was_opened(0))
    outcome.problems.emplace_back(targets[0].path, RunProblem::never_opened);
  print_run_summary(context, store.path(), status, outcome, reports);
  return status_of(arguments, status, outcome);
}

int run_live(Context& context, const RunArguments& arguments,
             const std::vector<preload::RunTarget>& targets) {
  Store store = Store::open_or_create(arguments.store);
  if (store.options().encrypt) {
    fail(Errc::unsupported,
         "{}: the store is encrypted, and a program's files are plain: run takes another store",
         store.path());
  }
  require_free_snapshot(store, arguments, targets);
  RunFiles files(context, store, targets);
  const RunReports reports;
  RunningProgram program;
  program.command = arguments.command;
  program.environment = environment_for(arguments, store.path(), targets, reports);
  program.period = std::chrono::milliseconds(
      static_cast<std::chrono::milliseconds::rep>(arguments.every_seconds * 1000));
  program.on_tick = [&] { keep_heads(store, files); };
  program.held_below = base::real_path(store.path()) + "/branches/";
  program.quiet = context.quiet;
  const int status = run_program(program);
  const RunOutcome outcome = files.finish(reports);
  const bool kept = keep_run(store, arguments, files, targets);
  print_run_summary(context, store.path(), status, outcome, reports);
  return status == 0 && !kept ? kExitOther : status_of(arguments, status, outcome);
}

int run(Context& context, const RunArguments& arguments) {
  if (arguments.command.empty())
    fail(Errc::invalid_argument,
         "run needs a program: vellum run --store STORE --file FILE -- PROGRAM ARGUMENTS");
  const auto targets = targets_of(arguments.files, arguments.branch);
  require_preloadable(find_program(arguments.command[0]), arguments.version.has_value());
  return arguments.version ? run_old_version(context, arguments, targets)
                           : run_live(context, arguments, targets);
}

// The program and its arguments are not options: they follow --.
class RunFormatter : public CLI::Formatter {
 public:
  explicit RunFormatter(const CLI::FormatterBase& others)
      : CLI::Formatter(dynamic_cast<const CLI::Formatter&>(others)) {}

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.erase(usage.find_last_not_of('\n') + 1);
    return usage + " -- PROGRAM [ARGUMENT...]\n";
  }
};

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run", "Run an unmodified program, and give its file atomic msync and versions");
  command->formatter(std::make_shared<RunFormatter>(*app.get_formatter()));
  command->add_option("--store", arguments->store, "The store; it is created if it does not exist")
      ->required()
      ->type_name("STORE");
  command->add_option("--file", arguments->files, "The program's file, or a pattern; repeatable")
      ->required()
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--branch", arguments->branch, "The branch of the one file (default: main)")
      ->type_name("NAME");
  command->add_option("--snapshot-every-commits", arguments->every_commits,
                      "Make a snapshot of every Nth commit, BRANCH-SEQUENCE");
  command
      ->add_option("--snapshot-every-seconds", arguments->every_seconds,
                   "Make a snapshot about this often; SIGUSR1 to this process makes one at once")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const kept =
      command
          ->add_option("--snapshot", arguments->snapshot,
                       "Keep what the run has made under this name; several files are one set")
          ->type_name("NAME");
  command->add_flag("--no-gc", arguments->no_gc,
                    "Do not free unneeded space in the store until `vellum gc`");
  command
      ->add_option("--version", arguments->version,
                   "Let the program read this version of its file, and write nothing")
      ->type_name("VERSION")
      ->excludes(kept);
  command->add_flag("--strict", arguments->strict,
                    "Exit with 13 if a file changed around vellum, or was never opened");
  command->footer("-- PROGRAM [ARGUMENTS]\n  The program to run. The exit status is its own.");
  command->callback([&context, arguments] {
    arguments->command = context.program;
    context.action = [&context, arguments] { return run(context, *arguments); };
  });
}

}  // namespace vellum::cli
