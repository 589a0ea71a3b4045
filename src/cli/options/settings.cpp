#include "cli/options/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/real_path.hpp"
#include "cli/terminal/command.hpp"
#include "remote/engine/url.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kMaxConfigBytes = 64u << 10;

// An empty variable counts as unset, as in the XDG specification.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Empty: there is no home, so there is no file.
std::string config_path() {
  const std::string config = variable("XDG_CONFIG_HOME");
  if (config.starts_with('/')) return config + "/vellum/config";  // a relative one is invalid
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/vellum/config";
}

std::vector<CLI::ConfigItem> items_of(const std::string& path) {
  const std::vector<std::byte> bytes =
      base::read_whole(base::posix_fs(), base::real_path(path), kMaxConfigBytes);
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  try {
    return CLI::ConfigTOML().from_config(text);
  } catch (const std::exception& error) {
    fail(Errc::invalid_argument, "{}: {}", path, error.what());
  }
}

// A relative path would mean another store in each directory.
std::string store_of(const std::string& path, const std::string& value) {
  if (value.starts_with("~/")) return variable("HOME") + value.substr(1);
  if (!value.starts_with('/') && !remote::is_remote_url(value))
    fail(Errc::invalid_argument, "{}: store = {}: must be a path from / or ~/, or a URL", path,
         value);
  return value;
}

std::string time_format_of(const std::string& path, const std::string& value) {
  if (value != "iso" && value != "human")
    fail(Errc::invalid_argument, "{}: time-format = {}: must be iso or human", path, value);
  return value;
}

void take(Settings& settings, const std::string& path, const CLI::ConfigItem& item) {
  if (!item.parents.empty() || (item.name != "store" && item.name != "time-format"))
    fail(Errc::invalid_argument, "{}: there is no setting '{}', only store and time-format", path,
         item.parents.empty() ? item.name : item.parents.front());
  if (item.inputs.size() != 1 || item.inputs[0].empty())
    fail(Errc::invalid_argument, "{}: {} takes one value; put quotes around one with spaces", path,
         item.name);
  if (item.name == "store") {
    settings.store = store_of(path, item.inputs[0]);
  } else {
    settings.time_format = time_format_of(path, item.inputs[0]);
  }
}

// The option of this name, of the command or of all commands; null: there is none.
const CLI::Option* option_named(const CLI::App& app, const CLI::App& command,
                                const std::string& name) {
  const CLI::Option* const own = command.get_option_no_throw(name);
  return own != nullptr ? own : app.get_option_no_throw(name);
}

bool takes_next_argument(const CLI::App& app, const CLI::App& command, const std::string& option) {
  if (option.find('=') != std::string::npos) return false;
  const CLI::Option* const known = option_named(app, command, option);
  return known != nullptr && known->get_items_expected_min() > 0;
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

bool is_store(const std::string& word) {
  std::error_code ignored;
  return remote::is_remote_url(word) || std::filesystem::exists(word + "/vellum.store", ignored);
}

// A store that the command creates, before files that exist.
bool is_new_store(const CLI::Option& last, const std::vector<std::string>& words) {
  std::error_code ignored;
  return last.get_name() == "FILE" && last.get_items_expected_max() > 1 && words.size() > 1 &&
         !std::filesystem::exists(words[0], ignored);
}

bool lacks_store(const CLI::App& command, const std::vector<std::string>& words) {
  const auto positionals = positionals_of(command);
  if (positionals.empty() || positionals[0]->get_name() != "STORE") return false;
  std::size_t least = 0, most = 0;
  for (const CLI::Option* option : positionals) {
    least += option->get_required() ? 1 : 0;
    most += static_cast<std::size_t>(option->get_items_expected_max());
  }
  if (words.size() >= most) return false;
  if (least == 0) return false;  // without a store the command means all of them
  if (words.size() < least) return words.empty() || !is_store(words[0]);
  if (is_new_store(*positionals.back(), words)) return false;
  return !is_store(words[0]) && words[0].find('/') == std::string::npos;
}

// For `vellum run`, which has its store as an option.
bool lacks_store_option(const CLI::App& command, const std::vector<std::string>& arguments) {
  if (command.get_option_no_throw("--store") == nullptr) return false;
  return std::none_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "--store" || argument.starts_with("--store=");
  });
}

}  // namespace

Settings read_settings() {
  Settings settings;
  const std::string path = config_path();
  std::error_code unreachable;  // a home of another user's, which may not be searched
  if (!path.empty() && std::filesystem::exists(path, unreachable)) {
    for (const CLI::ConfigItem& item : items_of(path)) take(settings, path, item);
  }
  const std::string store = variable("VELLUM_STORE");
  if (!store.empty()) settings.store = store;
  return settings;
}

Words words_of(const CLI::App& app, const std::vector<std::string>& arguments) {
  Words words;
  const CLI::App* command = &app;
  bool options_end = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!options_end && argument == "--") {
      options_end = true;
    } else if (!options_end && argument.size() > 1 && argument.starts_with('-')) {
      i += takes_next_argument(app, *command, argument) ? 1 : 0;
    } else if (const CLI::App* const inner =
                   words.positionals.empty() ? find_command(*command, argument) : nullptr) {
      command = words.command = inner;
      words.commands.push_back(i);
    } else {
      words.positionals.push_back(i);
    }
  }
  return words;
}

void add_default_store(const CLI::App& app, const std::string& store,
                       std::vector<std::string>& arguments) {
  const Words words = words_of(app, arguments);
  if (store.empty() || words.command == nullptr) return;
  std::vector<std::string> texts;
  for (const std::size_t place : words.positionals) texts.push_back(arguments[place]);
  const auto behind_command =
      arguments.begin() + static_cast<std::ptrdiff_t>(words.commands.back()) + 1;
  if (lacks_store(*words.command, texts)) {
    arguments.insert(behind_command, store);
  } else if (lacks_store_option(*words.command, arguments)) {
    arguments.insert(behind_command, {"--store", store});
  }
}

}  // namespace vellum::cli
