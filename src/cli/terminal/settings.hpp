// cli/terminal/settings.hpp: settings for all calls of the program.
//
// An argument takes precedence, then the environment, then the file $XDG_CONFIG_HOME/vellum/config
// ($HOME/.config without that variable):
//
//   # the store of commands without a store argument; VELLUM_STORE takes precedence
//   store = "/data/s"
//   # iso or human; --time-format takes precedence
//   time-format = human
#pragma once

#include <string>

namespace vellum::cli {

struct Settings {
  std::string store;        // a path or a URL; empty: none
  std::string time_format;  // empty: the program's default
};

// A missing or inaccessible file is no error. Throws Errc::invalid_argument for an unknown key, an
// invalid value, or a relative path, and names file and key.
Settings read_settings();

}  // namespace vellum::cli
