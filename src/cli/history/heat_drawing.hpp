// cli/history/heat_drawing.hpp: a heat map for a terminal and as a picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/history/heat_map.hpp"
#include "cli/terminal/output.hpp"

namespace vellum::cli {

inline constexpr unsigned kShades = 6;

// The changed share of `bytes`, as one of kShades: 0 is nothing, 5 nearly all.
unsigned shade_of(std::uint64_t bytes_changed, std::uint64_t bytes) noexcept;

// The colour of a shade, as 0xRRGGBB.
std::uint32_t color_of(unsigned shade) noexcept;

// The bytes that a column has: the last one may have fewer.
std::uint64_t bytes_of_column(const HeatMap& map, std::size_t column) noexcept;

// Prints a row for each version, the newest first, and a legend of the shades. `utf8`: with shaded
// blocks; otherwise with ASCII characters.
void print_heat(Output& out, const HeatMap& map, bool utf8);

// The address of a change: from the version before to this one, at an offset.
using HeatLink = std::function<std::string(const std::string& before, const std::string& version,
                                           std::uint64_t offset)>;

// A standalone SVG document with a legend and an axis: it loads no external resources, and contains
// no script. With `link`, names and cells lead to the changes.
std::string heat_svg(const HeatMap& map, const HeatLink& link = nullptr);

struct Png {
  std::uint32_t width = 0, height = 0;  // in pixels
  std::vector<std::byte> bytes;
};

// With libpng: a row of cells for each version, the newest first, in the colours of the SVG, without
// text. If the picture would have more than 16 million pixels, cells are smaller, down to a pixel.
// Throws Errc::invalid_argument for more versions than pixels, Errc::unsupported without libpng.
// REQUIRES: the map has rows.
Png heat_png(const HeatMap& map);

}  // namespace vellum::cli
