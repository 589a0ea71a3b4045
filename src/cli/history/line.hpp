// cli/history/line.hpp: the versions that commands over a stretch of history look at.
#pragma once

#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

// The versions on one line, oldest first: at least one. `stretch` is "A..B" (from A, or its newest
// ancestor that is left, to B), "B" (all of B's line), or empty for `main`, or the only branch.
// A and B are named as version_names.hpp says. Throws Errc::not_found and Errc::invalid_argument.
std::vector<VersionInfo> versions_of(const Store& store, const std::string& stretch);

}  // namespace vellum::cli
