#include "cli/terminal/settings.hpp"

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

}  // namespace vellum::cli
