// cli/web/graph_drawing.hpp: the graph of versions as a picture.
#pragma once

#include <string>
#include <vector>

#include "cli/names/version_graph.hpp"

namespace vellum::cli {

// A legend of the branches, and an SVG: a lane for each branch, a dot for each version, a line to
// its parent. Names link to the version, `diff` to its changes. The colours are those of the style
// sheet.
std::string graph_svg(const std::vector<GraphRow>& rows);

}  // namespace vellum::cli
