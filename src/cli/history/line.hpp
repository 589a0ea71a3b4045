// cli/history/line.hpp: the versions of commands that work on a part of the history.
#pragma once

#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

// The versions on one line, oldest first: at least one. `stretch` is "A..B" (from A, or its newest
// existing ancestor, to B), "B" (all of B's line), or empty for `main`, or the only branch. A and B
// are names as in version_names.hpp. Throws Errc::not_found and Errc::invalid_argument.
std::vector<VersionInfo> versions_of(const Store& store, const std::string& stretch);

}  // namespace vellum::cli
