// cli/names/version_graph.hpp: the graph of a store's versions, drawn next to their list.
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
  std::string parent = {};  // of the version: the next row of its line; empty: none
};

// Every version once, below all of its descendants: snapshots from the newest to the oldest, a
// branch's head above its parent snapshot. A parent that is not among `versions`, or is no older
// than its child (the name was reused), ends a line. REQUIRES: `versions` are in the order of
// sort_newest_first().
std::vector<GraphRow> graph_of(std::vector<VersionInfo> versions);

}  // namespace vellum::cli
