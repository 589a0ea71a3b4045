// cli/names/listing.hpp: names of versions on a command line, and lists of versions.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/terminal/command.hpp"
#include "region/api/version_names.hpp"

namespace vellum::cli {

// The same names as the library's.
using api::branch_heads;
using api::commits_of;
using api::Edge;
using api::is_commit;
using api::line_of;
using api::moment_of;
using api::Newest;
using api::newest_at;
using api::newest_snapshots;
using api::resolve_version;
using api::snapshots_named;
using api::sort_newest_first;

// The time in a list: a snapshot's creation, or a branch's last commit.
std::chrono::system_clock::time_point shown_time(const VersionInfo& version);

// Prints a table, in which a set (cli/names/snapshot_set.hpp) is one row; with `names_only`, names;
// with --json, an object with "store", which is the path or the URL of `place`, and "versions".
void print_versions(Context& context, const std::string& place,
                    const std::vector<VersionInfo>& versions, bool names_only);

// Prints the table, or the names, with the graph of lines before each row.
void print_graph(Context& context, const std::vector<VersionInfo>& versions, bool names_only);

// Prints the list of branch and snapshot without a name.
void list_kind(Context& context, const std::string& store_path, bool branches, bool names_only);

}  // namespace vellum::cli
