// cli/options/settings.hpp: settings for all calls of the program, and their store in
// command lines that name none.
//
// An argument takes precedence, then the environment, then the file $XDG_CONFIG_HOME/vellum/config
// ($HOME/.config without that variable):
//
//   # the store of commands without a store argument; VELLUM_STORE takes precedence
//   store = "/data/s"
//   # iso or human; --time-format takes precedence
//   time-format = human
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace vellum::cli {

struct Settings {
  std::string store;        // a path or a URL; empty: none
  std::string time_format;  // empty: the program's default
};

// A missing or inaccessible file is no error. Throws Errc::invalid_argument for an unknown key, an
// invalid value, or a relative path, and names file and key.
Settings read_settings();

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
