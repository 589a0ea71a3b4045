// cli/history/space.hpp: the size of a version in a store's packs.
#pragma once

#include <vellum/store.hpp>

namespace vellum::cli {

// The space of `version`; empty for one that was created after `stat`.
VersionSpace space_of(const StoreStat& stat, const VersionInfo& version);

}  // namespace vellum::cli
