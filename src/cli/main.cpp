// cli/main.cpp: the program `vellum`: parses, runs one command, and turns errors into messages and
// exit statuses.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <vellum/version.hpp>

#include "base/fail.hpp"
#include "cli/options/key_arguments.hpp"
#include "cli/options/settings.hpp"
#include "cli/options/suggest.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

// If a standard descriptor is closed at the start, a store's file would get its number, and the
// program would print into that file. The substitute refuses writes (EBADF).
void occupy_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      [[maybe_unused]] const int got = ::open("/dev/null", O_RDONLY);  // the lowest free: fd
    }
  }
}

// Reports an error as text; with --json also as an object, or as the end of the object that the
// command has begun.
int fail(Context& context, const char* code, int status, const std::string& message) {
  try {
    if (context.json && !context.raw_output) {
      const std::string error =
          json_text(Json{{"code", code}, {"exit_status", status}, {"message", message}});
      context.out.write(context.json_prefix.empty() ? "{" : context.json_prefix);
      context.out.write("\"error\":" + error + "}\n");
    }
    context.out.flush();
  } catch (const std::exception&) {
    context.out.discard();  // the output itself has failed: the text matters more
  }
  print_error(message);
  return status;
}

int fail(Context& context, const Error& error) {
  return fail(context, errc_name(error.code()), exit_status(error.code()), error.what());
}

const std::map<std::string, TimeFormat> kTimeFormats{{"iso", TimeFormat::iso},
                                                     {"human", TimeFormat::human}};

void add_global_options(CLI::App& app, Context& context) {
  app.set_version_flag("-V,--version", std::string("vellum ") + version());
  app.add_flag("--json", context.json, "Print one JSON object instead of text");
  app.add_flag("-q,--quiet", context.quiet, "Print only requested output, and errors");
  app.add_flag("--no-progress", context.no_progress, "Show no progress line on a terminal");
  app.add_option_function<std::string>(
         "--time-format",
         [&context](const std::string& name) { context.out.time_format = kTimeFormats.at(name); },
         "The format of times in text: iso or human")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"iso", "human"}));
  add_key_options(app, context.keys);
  app.add_option(
         "--sign-key", context.sign_key,
         "Signs each snapshot that is made: a private key of Ed25519, in PEM or OpenSSH's format")
      ->type_name("FILE");
}

using AddCommand = void (*)(CLI::App&, Context&);

// The commands as the help lists them.
struct CommandGroup {
  const char* title;
  std::vector<AddCommand> commands;
};

const std::vector<CommandGroup>& command_groups() {
  static const std::vector<CommandGroup> groups{
      {"Keep versions", {add_init, add_snapshot, add_branch, add_rm, add_forget}},
      {"Inspect versions",
       {add_log, add_show, add_diff, add_heat, add_blame, add_cat, add_prove, add_web}},
      {"Files and programs",
       {add_run, add_mount, add_import, add_export, add_attach, add_backup, add_restore,
        add_recover}},
      {"Share", {add_remote, add_push, add_pull, add_clone, add_replicate, add_group}},
      {"Maintain a store",
       {add_stat, add_du, add_gc, add_tier, add_key, add_verify, add_repair, add_top, add_help}}};
  return groups;
}

void add_commands(CLI::App& app, Context& context) {
  for (const CommandGroup& group : command_groups()) {
    for (const AddCommand add : group.commands) {
      add(app, context);
      app.get_subcommands([](const CLI::App*) { return true; }).back()->group(group.title);
    }
  }
}

std::string or_help(const std::string& hint) { return hint.empty() ? "; see vellum --help" : hint; }

// A hint for a command of another program; "": none.
std::string other_name(const std::string& command) {
  static const std::map<std::string, const char*> kOthers{
      {"check", "vellum verify checks a store"},
      {"fsck", "vellum verify checks a store"},
      {"prune", "vellum forget removes snapshots by rules, and vellum gc frees their space"},
      {"status", "vellum log lists the versions of a store, and vellum stat prints its space"},
      {"list", "vellum log lists the versions of a store"},
      {"snapshots", "vellum log lists the versions of a store"},
      {"checkout",
       "vellum restore replaces a file by a version, and vellum export writes a new one"},
      {"commit", "vellum backup records a file's content, and vellum snapshot a branch's head"},
      {"save", "vellum backup records a file's content, and vellum snapshot a branch's head"},
      {"tag", "vellum snapshot gives a branch's head a name"},
      {"add", "vellum backup records a file's content; vellum run and attach follow a file"},
      {"create", "vellum init creates a store, and vellum backup also the first version"},
      {"extract",
       "vellum restore replaces a file by a version, and vellum export writes a new one"},
      {"fetch", "vellum pull fetches versions from a remote"},
      {"find", "vellum log --grep lists versions by text, --since and --until by time"},
      {"info", "vellum show prints everything about a version, and vellum stat about a store"},
      {"recreate", "vellum gc --recompress rewrites packs, and vellum repair saves a new store"},
      {"rename", "vellum branch --rename renames a branch"},
      {"reset", "vellum restore replaces a file by a version"},
      {"revert", "vellum restore replaces a file by a version"},
      {"rollback", "vellum restore replaces a file by a version"},
      {"undo", "vellum restore replaces a file by a version"},
      {"stats", "vellum stat prints the space of a store"},
      {"switch", "vellum branch begins a branch at a version"},
      {"umount", "fusermount3 -u unmounts a directory of vellum mount"},
      {"unlock", "nothing has to be unlocked: a lock ends with its process"},
      {"delete", "vellum rm removes a snapshot or a branch"},
      {"remove", "vellum rm removes a snapshot or a branch"}};
  const auto found = kOthers.find(command);
  return found == kOthers.end() ? std::string() : fmt::format(": {}", found->second);
}

// The parser's own message for an unknown command would be that a command is missing.
void require_known_command(const CLI::App& app, const std::vector<std::string>& arguments) {
  const Words words = words_of(app, arguments);
  if (words.command != nullptr || words.positionals.empty()) return;
  const std::string& command = arguments[words.positionals[0]];
  std::string hint = other_name(command);
  if (hint.empty()) hint = or_help(did_you_mean(command, command_names(app)));
  fail(Errc::invalid_argument, "there is no command '{}'{}", command, hint);
}

void add_long_options(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
}

// Suggests the nearest known option for one that neither the program nor the command has.
std::string option_hint(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> known;
  const CLI::App* command = &app;
  add_long_options(app, known);
  for (const std::string& argument : arguments) {
    const CLI::App* const inner = find_command(*command, argument);
    if (inner == nullptr) continue;
    command = inner;
    add_long_options(*command, known);
  }
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with("--") || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    return did_you_mean(name, known);
  }
  return "";
}

// An unset shell variable leaves an empty string, which names nothing.
void require_no_empty_value(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name("--message") || option->check_name("--prefix")) continue;
    const auto& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    fail(Errc::invalid_argument, "{} is empty: it needs a name, a path or a value",
         option->get_name());
  }
  for (const CLI::App* command : app.get_subcommands()) require_no_empty_value(*command);
}

// The parser must not see the arguments of the program that `vellum run` starts.
std::vector<std::string> take_program(const CLI::App& app, std::vector<std::string>& arguments) {
  const Words words = words_of(app, arguments);
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (words.command == nullptr || words.command->get_name() != "run" || dashes == arguments.end())
    return {};
  std::vector<std::string> program(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return program;
}

bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

void apply_settings(Context& context, const CLI::App& app, std::vector<std::string>& arguments) {
  const Settings settings = read_settings();
  add_default_store(app, settings.store, arguments);
  if (!settings.time_format.empty())
    context.out.time_format = kTimeFormats.at(settings.time_format);
}

// The parser also throws exceptions for help and version.
int report_parser_result(Context& context, const CLI::App& app, const CLI::ParseError& said,
                         const std::vector<std::string>& arguments) {
  if (said.get_exit_code() == 0) {
    std::ostringstream out;
    app.exit(said, out, out);
    context.print_help(out.str());
    return kExitOk;
  }
  return fail(context, errc_name(Errc::invalid_argument), exit_status(Errc::invalid_argument),
              said.what() + or_help(option_hint(app, arguments)));
}

int run_action(Context& context, const std::vector<std::string>& arguments) {
  try {
    return context.action();
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    const std::string store = context.store == nullptr ? "" : *context.store;
    fail(error.code(), "{}{}", error.what(), hint_for_missing(error, arguments, store));
  }
}

int parse_and_run(Context& context, std::vector<std::string> arguments) {
  CLI::App app("Versioned durable memory: inspects and changes a store.", "vellum");
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.get_formatter()->label("TEXT", "");
  app.get_formatter()->label("REQUIRED", "");
  app.get_formatter()->column_width(31);  // two spaces after the longest name of an option
  app.footer(
      "--json, --quiet, --no-progress and --time-format work with every command.\nvellum COMMAND "
      "--help describes one command; vellum(1) lists the exit statuses.");
  app.fallthrough();  // global options may follow the command
  app.require_subcommand(1);
  add_global_options(app, context);
  add_commands(app, context);
  context.program = take_program(app, arguments);
  // For errors in the arguments themselves; the parser decides for all others.
  const bool json_wanted = asks_for_json(arguments);
  context.json = json_wanted;
  require_known_command(app, arguments);
  apply_settings(context, app, arguments);
  context.json = false;
  try {
    // The parser expects the last one first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& said) {
    context.json = json_wanted;
    return report_parser_result(context, app, said, arguments);
  }
  require_no_empty_value(app);
  use_keys(context.keys);
  use_sign_key(context.sign_key);
  return run_action(context, arguments);
}

int run(Context& context, std::vector<std::string> arguments) {
  try {
    const int status = parse_and_run(context, std::move(arguments));
    context.out.finish();
    return status;
  } catch (const Error& error) {
    return fail(context, error);
  } catch (const std::bad_alloc&) {
    return fail(context, errc_name(Errc::out_of_memory), exit_status(Errc::out_of_memory),
                "out of memory");
  } catch (const std::exception& error) {
    return fail(context, "internal", kExitOther, error.what());
  }
}

}  // namespace
}  // namespace vellum::cli

int main(int argc, char** argv) {
  vellum::cli::occupy_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error (EFBIG)
  vellum::cli::Context context;
  return vellum::cli::run(context, std::vector<std::string>(argv + 1, argv + argc));
}
