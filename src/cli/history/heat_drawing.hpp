// cli/history/heat_drawing.hpp: a heat map for a terminal and as a picture.
#pragma once

#include <string>

#include "cli/history/heat_map.hpp"
#include "cli/terminal/output.hpp"

namespace vellum::cli {

// How much of `bytes` changed, as one of few shades: 0 is nothing, 5 nearly all.
unsigned shade_of(std::uint64_t bytes_changed, std::uint64_t bytes) noexcept;

// A row for each version, the newest first, and what the shades mean. `utf8`: with shaded blocks;
// otherwise with characters of ASCII.
void print_heat(Output& out, const HeatMap& map, bool utf8);

// An SVG document of its own: nothing is loaded from elsewhere, and it holds no script.
std::string heat_svg(const HeatMap& map);

}  // namespace vellum::cli
