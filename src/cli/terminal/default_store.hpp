// cli/terminal/default_store.hpp: the default store of command lines that name none.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace vellum::cli {

// The positions of the words of a command line that are neither options nor their values.
struct Words {
  const CLI::App* command = nullptr;  // the innermost command; null: none
  std::vector<std::size_t> commands;  // its name, after those of its parent commands
  std::vector<std::size_t> positionals;
};
Words words_of(const CLI::App& app, const std::vector<std::string>& arguments);

// Adds `store` if the command takes one and `arguments` have none:
// - fewer words than the command needs, and the first is not a store: it is missing;
// - as many as it can take: it is given;
// - in between, the first word is the store if it is one, is a URL, or has a slash.
void add_default_store(const CLI::App& app, const std::string& store,
                       std::vector<std::string>& arguments);

}  // namespace vellum::cli
