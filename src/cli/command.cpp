// cli/command.cpp: what the commands share.
#include "cli/command.hpp"

#include <utility>

namespace vellum::cli {

void Context::report(const Json& object, const std::string& sentence) {
  if (json) {
    out.print_json(object);
  } else if (!quiet) {
    out.write(printable(sentence) + "\n");
  }
}

CLI::App* add_command(CLI::App& app, Context& context, const std::string& name,
                      const std::string& description, std::string& store,
                      std::function<int()> run) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("STORE", store, "The store's directory")->required();
  command->callback([&context, run = std::move(run)] { context.action = run; });
  return command;
}

}  // namespace vellum::cli
