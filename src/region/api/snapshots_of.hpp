// region/api/snapshots_of.hpp: the snapshots that retention considers, for `vellum forget` and the
// C interface.
#pragma once

#include <string>
#include <vector>
#include <vellum/store.hpp>

namespace vellum::api {

// The snapshots among `versions` that were created on `branch` (empty: on any) and whose names
// begin with `prefix`.
std::vector<VersionInfo> snapshots_of(std::vector<VersionInfo> versions, const std::string& branch,
                                      const std::string& prefix);

}  // namespace vellum::api
