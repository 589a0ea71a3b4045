// cli/terminal/default_store.hpp: command lines that name no store, because there is a usual one.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace vellum::cli {

// The places of the words of a command line: neither options nor their values.
struct Words {
  const CLI::App* command = nullptr;  // the innermost command that is named; null: none is
  std::vector<std::size_t> commands;  // its name, after those of the commands that it is in
  std::vector<std::size_t> positionals;
};
Words words_of(const CLI::App& app, const std::vector<std::string>& arguments);

// Adds `store` where the command takes one and `arguments` give none:
// - fewer words than the command needs, and the first is no store: it is missing;
// - as many as it can take: it is there;
// - in between, the first word is the store if it is one, is a URL, or has a slash.
void add_default_store(const CLI::App& app, const std::string& store,
                       std::vector<std::string>& arguments);

}  // namespace vellum::cli
