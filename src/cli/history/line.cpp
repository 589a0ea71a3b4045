#include "cli/history/line.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "cli/names/listing.hpp"

namespace vellum::cli {
namespace {

std::string usual_branch(const Store& store) {
  std::vector<std::string> branches;
  for (const VersionInfo& v : branch_heads(store)) branches.push_back(v.name);
  if (branches.size() == 1) return branches[0];
  if (std::find(branches.begin(), branches.end(), "main") != branches.end()) return "main";
  fail(branches.empty() ? Errc::not_found : Errc::invalid_argument, "{} has {}: name a version",
       store.path(), branches.empty() ? "no branch" : "several branches, none of them 'main'");
}

}  // namespace

std::vector<VersionInfo> versions_of(const Store& store, const std::string& stretch) {
  const std::size_t dots = stretch.find("..");
  const std::string last = dots == std::string::npos ? stretch : stretch.substr(dots + 2);
  std::vector<VersionInfo> line =
      line_of(store, last.empty() ? usual_branch(store) : resolve_version(store, last));
  std::reverse(line.begin(), line.end());
  if (dots == std::string::npos || dots == 0) return line;
  const VersionInfo first = store.version(resolve_version(store, stretch.substr(0, dots)));
  const auto found = std::find_if(line.begin(), line.end(), [&](const VersionInfo& v) {
    return is_commit(first) ? v.branch == first.branch && v.sequence > first.sequence
                            : v.name == first.name;
  });
  if (found == line.end())
    fail(Errc::invalid_argument, "'{}' is not before '{}' on its line", first.name,
         line.back().name);
  line.erase(line.begin(), found);
  if (is_commit(first)) line.insert(line.begin(), first);  // no list of versions has commits
  return line;
}

std::optional<VersionInfo> existing_parent(const Store& store, const VersionInfo& version) {
  if (version.parent.empty() || !store.contains(version.parent)) return std::nullopt;
  VersionInfo parent = store.version(version.parent);
  const bool is_older = version.is_branch || parent.order < version.order;
  if (parent.is_branch || !is_older) return std::nullopt;
  return parent;
}

}  // namespace vellum::cli
