// cli/history/parent.hpp: the version before another one.
#pragma once

#include <optional>

#include <vellum/store.hpp>

namespace vellum::cli {

// Nothing: the version is the first on its line, or its parent has been removed, perhaps to give
// the name to a later one.
std::optional<VersionInfo> parent_that_is_left(const Store& store, const VersionInfo& version);

}  // namespace vellum::cli
