// cli/run_targets.hpp: which files `vellum run --file` means.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shim/config.hpp"

namespace vellum::cli {

// One file is branch main's unless another is named; several are of branches with their names.
// Throws for what can be no target: a directory, a place that does not exist, two files of one
// branch.
std::vector<shim::Target> targets_of(const std::vector<std::string>& files,
                                     const std::optional<std::string>& branch);

// The directory below which all files lie that a pattern may match; for one that begins with a
// star, which may match anywhere, the current directory.
std::string directory_of_pattern(const std::string& pattern);

}  // namespace vellum::cli
