// cli/names/version_graph.hpp: the lines of a store's versions, drawn beside their list.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

// A row of the drawing: a version, or without one the lines between two versions.
struct GraphRow {
  std::string drawing;
  std::optional<VersionInfo> version;
  std::string parent = {};  // of the version: the row that its line goes on to; empty: none
};

// Every version once, below all that came from it: snapshots from the newest to the oldest, a
// branch's head above the snapshot that it came from. A parent that is not among `versions`, or is
// no older than its child (the name was given again), ends a line. REQUIRES: `versions` are as
// sort_newest_first() leaves them.
std::vector<GraphRow> graph_of(std::vector<VersionInfo> versions);

}  // namespace vellum::cli
