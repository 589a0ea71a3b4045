#include "shim/config.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace vellum::shim {
namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  // Each ends with a newline, as a branch may be empty.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

Config Config::from_environment() {
  Config out;
  out.store = value_of(kStoreVariable);
  const auto paths = lines_of(value_of(kFilesVariable));
  const auto branches = lines_of(value_of(kBranchesVariable));
  const auto copies = lines_of(value_of(kCopiesVariable));
  if (out.store.empty() || paths.empty()) return {};
  if (branches.size() != paths.size() || (!copies.empty() && copies.size() != paths.size())) {
    std::fprintf(stderr, "vellum run: the environment is not what `vellum run` makes\n");
    return {};
  }
  for (std::size_t i = 0; i < paths.size(); ++i)
    out.targets.push_back({paths[i], branches[i], copies.empty() ? "" : copies[i]});
  out.snapshot_every = std::strtoull(value_of(kEveryVariable).c_str(), nullptr, 10);
  return out;
}

std::string Config::branch_for(const std::string& path) const {
  for (const Target& target : targets) {
    if (target.path == path) return target.branch;
    if (target.branch.empty() && fnmatch(target.path.c_str(), path.c_str(), 0) == 0)
      return branch_of_path(path);
  }
  return {};
}

bool is_pattern(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

std::string branch_of_path(const std::string& path) {
  constexpr std::size_t kLongest = 180;
  std::string out;
  bool exact = path.size() <= kLongest;
  for (const char c : path.substr(exact ? 0 : path.size() - kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    out += plain ? c : '+';
    exact = exact && (plain || c == '/');
  }
  if (out.front() != '+') out.front() = '+';
  if (exact) return out;
  char hash[20];
  std::snprintf(hash, sizeof hash, "+%016llx",
                static_cast<unsigned long long>(XXH3_64bits(path.data(), path.size())));
  return out + hash;
}

// Names without a hash have lost nothing.
std::string path_of_branch(const std::string& branch) {
  std::string out = branch;
  std::replace(out.begin(), out.end(), '+', '/');
  return branch_of_path(out) == branch ? out : std::string();
}

std::string snapshot_name(const std::string& branch, std::uint64_t sequence) {
  return fmt::format("{}-{:08}", branch, sequence);
}

}  // namespace vellum::shim
