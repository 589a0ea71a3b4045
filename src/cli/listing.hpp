// cli/listing.hpp: lists of versions, as log, branch and snapshot print them.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace vellum::cli {

// Newest first; of two with one time, a branch's head first, then the one with more commits.
void sort_newest_first(std::vector<VersionInfo>& versions);

// A table; with `names_only` just the names; with --json an object with "store" and "versions".
void print_versions(Context& context, const Store& store, const std::vector<VersionInfo>& versions,
                    bool names_only);

// The listing that branch and snapshot give when they are not told a name.
void list_kind(Context& context, const std::string& store_path, bool branches, bool names_only);

}  // namespace vellum::cli
