// cli/history/space.hpp: what a version takes in a store's packs.
#pragma once

#include <vellum/store.hpp>

namespace vellum::cli {

// Of `version`; empty for one that was made after `stat`.
VersionSpace space_of(const StoreStat& stat, const VersionInfo& version);

}  // namespace vellum::cli
