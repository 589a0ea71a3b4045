// cli/history/parent.hpp: the parent of a version.
#pragma once

#include <optional>

#include <vellum/store.hpp>

namespace vellum::cli {

// Nothing: the version is the first on its line, or its parent has been removed, and perhaps its
// name reused.
std::optional<VersionInfo> existing_parent(const Store& store, const VersionInfo& version);

}  // namespace vellum::cli
