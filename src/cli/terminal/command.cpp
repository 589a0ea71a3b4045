// cli/terminal/command.cpp: shared parts of the commands.
#include "cli/terminal/command.hpp"

#include <unistd.h>

#include <utility>

namespace vellum::cli {

void Context::report(const Json& object, const std::string& sentence) {
  if (json) {
    out.print_json(object);
  } else if (!quiet) {
    out.print_text("{}\n", printable(sentence));
  }
}

void Context::print_help(const std::string& text) {
  constexpr std::size_t kUsualColumns = 80;
  out.write(wrapped(text, screen_columns().value_or(kUsualColumns)));
}

void Context::begin_object(const Json& object) {
  std::string text = json_text(object);
  text.pop_back();
  out.write(text);
  json_prefix = ",";
}

void Context::explain(const std::string& sentence) const {
  if (json || quiet) return;
  const std::string line = wrapped_for_screen(printable(sentence), STDERR_FILENO) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_error("warning: " + warning);
}

CLI::App* add_command(CLI::App& app, Context& context, const std::string& name,
                      const std::string& description, std::string& store,
                      std::function<int()> run) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("STORE", store, "The store's directory")->required();
  command->callback([&context, &store, run = std::move(run)] {
    context.store = &store;
    context.action = run;
  });
  return command;
}

}  // namespace vellum::cli
