#include "run/run/watch.hpp"

#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "run/process/real.hpp"
#include "run/run/config.hpp"
#include "run/run/pattern.hpp"

namespace vellum::preload {
namespace {

constexpr const char* kNames[] = {kStoreVariable,  kFilesVariable, kBranchesVariable,
                                  kCopiesVariable, kEveryVariable, kNoGcVariable};

const char* last_part(const char* path) noexcept {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// A line that is a pattern also matches itself.
bool names(const char* line, const char* text) noexcept {
  return std::strcmp(line, text) == 0 || matches(line, text);
}

// A copy in its own mapping, followed by zeros; null if there is no memory.
char* copied(const char* text) noexcept {
  const std::size_t bytes = std::strlen(text) + 2;
  void* const at =
      VELLUM_REAL(mmap)(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at != MAP_FAILED ? std::strcpy(static_cast<char*>(at), text) : nullptr;
}

const char* lines_of(const char* text) noexcept {
  char* const lines = copied(text);
  if (lines != nullptr) std::replace(lines, lines + std::strlen(text), '\n', '\0');
  return lines;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  // Each ends with a newline, as a branch may be empty.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

template <typename Predicate>
bool any_line(const char* lines, const Predicate& is) noexcept {
  for (; lines != nullptr && *lines != '\0'; lines += std::strlen(lines) + 1)
    if (is(lines)) return true;
  return false;
}

}  // namespace

WatchedFiles::WatchedFiles() noexcept {
  for (std::size_t i = 0; i < kVariables; ++i)
    if (const char* const value = std::getenv(kNames[i])) values_[i] = copied(value);
  const char* const store = variable(kStoreVariable);
  const char* const files = variable(kFilesVariable);
  const char* const copies = variable(kCopiesVariable);
  if (store == nullptr || *store == '\0' || files == nullptr || *files == '\0') return;
  paths_ = lines_of(files);
  if (copies != nullptr && *copies != '\0') copies_ = lines_of(copies);
}

const WatchedFiles& WatchedFiles::instance() noexcept {
  static const WatchedFiles watch;
  return watch;
}

const char* WatchedFiles::variable(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < kVariables; ++i)
    if (name == kNames[i]) return values_[i];
  return nullptr;
}

Config Config::from(const WatchedFiles& watch) {
  const auto value_of = [&](const char* name) -> std::string {
    const char* const value = watch.variable(name);
    return value != nullptr ? value : "";
  };
  Config out;
  out.store = value_of(kStoreVariable);
  const auto paths = split(value_of(kFilesVariable));
  const auto branches = split(value_of(kBranchesVariable));
  const auto copies = split(value_of(kCopiesVariable));
  if (out.store.empty() || paths.empty()) return {};
  if (branches.size() != paths.size() || (!copies.empty() && copies.size() != paths.size())) {
    std::fprintf(stderr, "vellum run: the environment was not set by `vellum run`\n");
    return {};
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    out.targets.push_back({paths[i], branches[i], copies.empty() ? "" : copies[i]});
  out.snapshot_every = std::strtoull(value_of(kEveryVariable).c_str(), nullptr, 10);
  out.background_gc = value_of(kNoGcVariable) != "1";
  return out;
}

bool WatchedFiles::may_name(const char* path) const noexcept {
  const char* const name = last_part(path);
  return any_line(paths_, [&](const char* line) { return names(last_part(line), name); });
}

bool WatchedFiles::may_name_companion(const char* path) const noexcept {
  const std::string_view name = last_part(path);
  return any_line(paths_, [&](const char* line) {
    const std::string_view own = last_part(line);
    return name.starts_with(own) || (own == "data.mdb" && name == "lock.mdb");
  });
}

bool WatchedFiles::watches(const char* path) const noexcept {
  return any_line(paths_, [&](const char* line) { return names(line, path); });
}

bool WatchedFiles::watches(int fd) const noexcept {
  char link[32], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return watches(path);
}

}  // namespace vellum::preload
