// cli/web/pages/graph_drawing.hpp: the graph of versions as a picture.
#pragma once

#include <string>
#include <vector>

#include "cli/names/version_graph.hpp"

namespace vellum::cli {

// A legend of the branches, an SVG with a lane for each branch, a dot for each version, a line to
// its parent, and beside it a row with each version's facts, message, and changes. Two rows are
// chosen one after the other to be compared: `chosen` is the first one; empty: none is. The colours
// are those of the style sheet.
std::string graph_markup(const std::vector<GraphRow>& rows, const std::string& chosen);

}  // namespace vellum::cli
