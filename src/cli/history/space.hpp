// cli/history/space.hpp: the size of a version in a store's packs.
#pragma once

#include <algorithm>
#include <tuple>
#include <vellum/store.hpp>

namespace vellum::cli {

// The space of `version`; empty for one that was created after `stat`.
inline VersionSpace space_of(const StoreStat& stat, const VersionInfo& version) {
  const auto wanted = std::tie(version.is_branch, version.name);
  const auto at = std::lower_bound(stat.versions.begin(), stat.versions.end(), wanted,
                                   [](const VersionSpace& space, const auto& w) {
                                     return std::tie(space.is_branch, space.name) < w;
                                   });
  const bool known = at != stat.versions.end() && std::tie(at->is_branch, at->name) == wanted;
  return known ? *at : VersionSpace{};
}

}  // namespace vellum::cli
