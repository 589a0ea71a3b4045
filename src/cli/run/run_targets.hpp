// cli/run/run_targets.hpp: the files that `vellum run --file` names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/run/config.hpp"

namespace vellum::cli {

// A single file belongs to branch main unless `branch` names another; several files belong to
// branches with their names. Throws for paths that cannot be targets: a directory, a file in a
// missing directory, two files of one branch.
std::vector<preload::RunTarget> targets_of(const std::vector<std::string>& files,
                                           const std::optional<std::string>& branch);

// The directory that contains all possible matches of a pattern. A pattern that begins with a star
// may match anywhere; for that the result is the current directory.
std::string directory_of_pattern(const std::string& pattern);

}  // namespace vellum::cli
