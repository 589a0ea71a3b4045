#include "run/run/config.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>

#include "run/run/pattern.hpp"

namespace vellum::preload {

std::size_t Config::target_for(const std::string& path) const {
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const RunTarget& target) {
    return target.path == path || (target.branch.empty() && matches(target.path, path));
  });
  return static_cast<std::size_t>(found - targets.begin());
}

std::string Config::branch_for(const std::string& path) const {
  const std::size_t target = target_for(path);
  if (target == targets.size()) return {};
  return targets[target].branch.empty() ? branch_of_path(path) : targets[target].branch;
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

std::string snapshot_name(const std::string& branch, std::uint64_t sequence) {
  return fmt::format("{}-{:08}", branch, sequence);
}

}  // namespace vellum::preload
