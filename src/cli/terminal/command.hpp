// cli/terminal/command.hpp: shared by main and the commands. Each cmd_*.cpp adds one command to the
// parser.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <vellum/key.hpp>

#include "cli/terminal/output.hpp"

namespace vellum::cli {

struct Context {
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
  // Standard output has no JSON, but the requested bytes.
  bool raw_output = false;
  // The text before the member "error" when a failure ends an object that a command has begun;
  // empty: no object has begun.
  std::string json_prefix;
  // The command's STORE argument, for suggestions.
  const std::string* store = nullptr;
  // The secrets that open encrypted stores.
  KeySource keys;
  // A file with the key that signs snapshots; empty: that of the environment.
  std::string sign_key;
  // The arguments after -- of `vellum run`.
  std::vector<std::string> program;
  Output out;
  // Set by the parser for the given command. Returns the exit status; errors are vellum::Error.
  std::function<int()> action;

  bool progress_wanted() const { return !quiet && !no_progress; }
  // Reports the result of a command: with --json the object, otherwise the sentence unless --quiet.
  void report(const Json& object, const std::string& sentence);
  // Prints the parser's help, no wider than the terminal; in a file or a pipe than 80 columns.
  void print_help(const std::string& text);
  // Begins the object of a command that is about to fail: the failure adds the member "error".
  void begin_object(const Json& object);
  // Explains on standard error why there is no output. Silent with --json or --quiet.
  void explain(const std::string& sentence) const;
};

// Prints each on standard error, also with --json or --quiet: what a person should know about a
// command that succeeds.
void warn(const std::vector<std::string>& warnings);
// The same, at the end of its life: also before an error.
struct WarnAtEnd {
  const std::vector<std::string>& warnings;
  ~WarnAtEnd() { warn(warnings); }
};

// A command of the program, or a subcommand of `app`; null: no command of this name.
const CLI::App* find_command(const CLI::App& app, const std::string& word);
std::vector<std::string> command_names(const CLI::App& app);

// Adds the command `name`, which stores its STORE argument in `store` and runs `run`.
CLI::App* add_command(CLI::App& app, Context& context, const std::string& name,
                      const std::string& description, std::string& store, std::function<int()> run);

void add_help(CLI::App& app, Context& context);
void add_init(CLI::App& app, Context& context);
void add_log(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_stat(CLI::App& app, Context& context);
void add_du(CLI::App& app, Context& context);
void add_diff(CLI::App& app, Context& context);
void add_heat(CLI::App& app, Context& context);
void add_blame(CLI::App& app, Context& context);
void add_cat(CLI::App& app, Context& context);
void add_prove(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_attach(CLI::App& app, Context& context);
void add_backup(CLI::App& app, Context& context);
void add_restore(CLI::App& app, Context& context);
void add_branch(CLI::App& app, Context& context);
void add_snapshot(CLI::App& app, Context& context);
void add_rm(CLI::App& app, Context& context);
void add_forget(CLI::App& app, Context& context);
void add_gc(CLI::App& app, Context& context);
void add_tier(CLI::App& app, Context& context);
void add_key(CLI::App& app, Context& context);
void add_group(CLI::App& app, Context& context);
void add_remote(CLI::App& app, Context& context);
void add_push(CLI::App& app, Context& context);
void add_replicate(CLI::App& app, Context& context);
void add_pull(CLI::App& app, Context& context);
void add_clone(CLI::App& app, Context& context);
void add_verify(CLI::App& app, Context& context);
void add_repair(CLI::App& app, Context& context);
void add_recover(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_mount(CLI::App& app, Context& context);
void add_top(CLI::App& app, Context& context);
void add_web(CLI::App& app, Context& context);

}  // namespace vellum::cli
