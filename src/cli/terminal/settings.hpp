// cli/terminal/settings.hpp: what a user sets once, for all calls of the program.
//
// An argument comes first, then the environment, then the file $XDG_CONFIG_HOME/vellum/config
// ($HOME/.config without that variable):
//
//   # the store of commands that are given none; VELLUM_STORE comes first
//   store = "/data/s"
//   # iso or human; --time-format comes first
//   time-format = human
#pragma once

#include <string>

namespace vellum::cli {

struct Settings {
  std::string store;        // a path or a URL; empty: none
  std::string time_format;  // empty: as the program does by itself
};

// No file, or none that can be reached, is no error. Throws Errc::invalid_argument for a key that is unknown, a value that is
// none, or a relative path, and names file and key.
Settings read_settings();

}  // namespace vellum::cli
