// cli/history/line.hpp: the versions of commands that work on a part of the history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

// The versions on one line, oldest first: at least one. `stretch` is "A..B" (from A, or its newest
// existing ancestor, to B), "B" (all of B's line), or empty for `main`, or the only branch. A and B
// are names as in cli/names/listing.hpp. Throws Errc::not_found and Errc::invalid_argument.
std::vector<VersionInfo> versions_of(const Store& store, const std::string& stretch);

// The parent of a version. Nothing: the version is the first on its line, or its parent has been
// removed, and perhaps its name reused.
std::optional<VersionInfo> existing_parent(const Store& store, const VersionInfo& version);

}  // namespace vellum::cli
