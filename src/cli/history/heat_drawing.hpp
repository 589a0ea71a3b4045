// cli/history/heat_drawing.hpp: a heat map for a terminal and as a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/history/heat_map.hpp"
#include "cli/terminal/output.hpp"

namespace vellum::cli {

inline constexpr unsigned kShades = 6;

// How much of `bytes` changed, as one of kShades: 0 is nothing, 5 nearly all.
unsigned shade_of(std::uint64_t bytes_changed, std::uint64_t bytes) noexcept;

// The colour of a shade, as 0xRRGGBB.
std::uint32_t color_of(unsigned shade) noexcept;

// The bytes that a column has: the last one may have fewer.
std::uint64_t bytes_of_column(const HeatMap& map, std::size_t column) noexcept;

// A row for each version, the newest first, and what the shades mean. `utf8`: with shaded blocks;
// otherwise with characters of ASCII.
void print_heat(Output& out, const HeatMap& map, bool utf8);

// An SVG document of its own: nothing is loaded from elsewhere, and it holds no script.
std::string heat_svg(const HeatMap& map);

}  // namespace vellum::cli
