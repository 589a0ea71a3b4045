// cli/history/heat_png.hpp: a heat map as a PNG, with libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cli/history/heat_map.hpp"

namespace vellum::cli {

struct Png {
  std::uint32_t width = 0, height = 0;  // in pixels
  std::vector<std::byte> bytes;
};

// A row of cells for each version, the newest first, in the colours of the SVG, without text. If
// the picture would have more than 16 million pixels, cells are smaller, down to a pixel. Throws
// Errc::invalid_argument for more versions than pixels, Errc::unsupported without libpng. REQUIRES:
// the map has rows.
Png heat_png(const HeatMap& map);

}  // namespace vellum::cli
