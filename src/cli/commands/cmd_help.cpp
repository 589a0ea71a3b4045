// cli/commands/cmd_help.cpp: vellum help: prints the same as --help.
#include <memory>

#include "base/fail.hpp"
#include "cli/options/suggest.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"

namespace vellum::cli {
namespace {

int run_help(Context& context, const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* of = &app;
  std::string name = app.get_name();
  for (const std::string& word : words) {
    const CLI::App* const inner = find_command(*of, word);
    if (inner == nullptr)
      fail(Errc::invalid_argument, "there is no command '{}'{}", word,
           did_you_mean(word, command_names(*of)));
    of = inner;
    name += " " + inner->get_name();
  }
  // Avoids help(), which is for the command that was given: this one.
  context.print_help(of->get_formatter()->make_help(of, name, CLI::AppFormatMode::Normal));
  return kExitOk;
}

}  // namespace

const CLI::App* find_command(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->check_name(word)) return command;
  return nullptr;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
    const auto& aliases = command->get_aliases();
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  return names;
}

void add_help(CLI::App& app, Context& context) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = app.add_subcommand("help", "Print help, also for one command");
  command->add_option("COMMAND", *words, "The command");
  command->callback([&app, &context, words] {
    context.action = [&app, &context, words] { return run_help(context, app, *words); };
  });
}

}  // namespace vellum::cli
