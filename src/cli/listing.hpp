// cli/listing.hpp: lists of versions, as log, branch and snapshot print them.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace vellum::cli {

// The branches' heads by name, then the snapshots, the one made last first: in no case by the
// clock.
void sort_newest_first(std::vector<VersionInfo>& versions);

// What a list shows as the time: when a snapshot was made; of a branch, that of its last commit.
std::int64_t shown_time_ns(const VersionInfo& version);

// A table; with `names_only` just the names; with --json an object with "store" and "versions".
void print_versions(Context& context, const Store& store, const std::vector<VersionInfo>& versions,
                    bool names_only);

// The listing that branch and snapshot give when they are not told a name.
void list_kind(Context& context, const std::string& store_path, bool branches, bool names_only);

}  // namespace vellum::cli
