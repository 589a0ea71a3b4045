#include "cli/history/parent.hpp"

namespace vellum::cli {

std::optional<VersionInfo> existing_parent(const Store& store, const VersionInfo& version) {
  if (version.parent.empty() || !store.contains(version.parent)) return std::nullopt;
  VersionInfo parent = store.version(version.parent);
  const bool is_older = version.is_branch || parent.order < version.order;
  if (parent.is_branch || !is_older) return std::nullopt;
  return parent;
}

}  // namespace vellum::cli
