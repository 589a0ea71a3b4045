// cli/history/heat_png.cpp: a heat map as a PNG, with libpng.

#include <png.h>

#include <algorithm>
#include <array>

#include "base/fail.hpp"
#include "cli/history/heat_drawing.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint64_t kMaxPixels = 16u << 20;

struct CellSize {
  std::uint32_t width, height;
};

CellSize cell_for(std::uint64_t columns, std::uint64_t rows) {
  for (const CellSize cell : {CellSize{8, 14}, CellSize{4, 7}, CellSize{2, 4}, CellSize{1, 1}}) {
    if (columns * cell.width * rows * cell.height <= kMaxPixels) return cell;
  }
  fail(Errc::invalid_argument, "{} versions of {} columns are too many for a picture: take fewer",
       rows, columns);
}

std::vector<png_byte> palette() {
  std::vector<png_byte> colors;
  for (unsigned shade = 0; shade < kShades; ++shade) {
    const std::uint32_t rgb = color_of(shade);
    for (const unsigned shift : {16u, 8u, 0u})
      colors.push_back(static_cast<png_byte>(rgb >> shift & 0xff));
  }
  return colors;
}

// A shade for each pixel.
std::vector<png_byte> pixels_of(const HeatMap& map, const CellSize& cell) {
  std::vector<png_byte> pixels;
  for (auto row = map.rows.rbegin(); row != map.rows.rend(); ++row) {
    std::vector<png_byte> line;
    for (std::size_t i = 0; i < row->changed_in_column.size(); ++i) {
      const unsigned shade = shade_of(row->changed_in_column[i], bytes_of_column(map, i));
      line.insert(line.end(), cell.width, static_cast<png_byte>(shade));
    }
    for (std::uint32_t y = 0; y < cell.height; ++y)
      pixels.insert(pixels.end(), line.begin(), line.end());
  }
  return pixels;
}

}  // namespace

Png heat_png(const HeatMap& map) {
  const std::size_t columns = map.rows.front().changed_in_column.size();
  const CellSize cell = cell_for(columns, map.rows.size());
  Png png;
  png.width = static_cast<std::uint32_t>(columns) * cell.width;
  png.height = static_cast<std::uint32_t>(map.rows.size()) * cell.height;
  const std::vector<png_byte> colors = palette();
  const std::vector<png_byte> pixels = pixels_of(map, cell);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png.width;
  image.height = png.height;
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = kShades;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  png.bytes.resize(size);
  if (png_image_write_to_memory(&image, png.bytes.data(), &size, 0, pixels.data(), 0,
                                colors.data()) == 0)
    fail(Errc::out_of_memory, "libpng: {}", image.message);
  png.bytes.resize(size);
  return png;
}

}  // namespace vellum::cli
