#include "cli/history/heat_drawing.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {
namespace {

constexpr std::array<double, kShades - 1> kMax{0, 0.01, 0.1, 0.4, 0.8};  // of a column
constexpr std::array<const char*, kShades> kBlocks{" ", "·", "░", "▒", "▓", "█"};
constexpr std::array<const char*, kShades> kAscii{" ", ".", ":", "+", "#", "@"};
constexpr std::array<std::uint32_t, kShades> kColors{0xf4f4f4, 0xfee8c8, 0xfdbb84,
                                                     0xfc8d59, 0xd7301f, 0x7f0000};

constexpr int kCellWidth = 8, kCellHeight = 14, kNamesWidth = 180, kMargin = 12, kTop = 48;

void add_svg_cell(std::string& svg, const HeatMap& map, const HeatRow& row, std::size_t column,
                  int y) {
  const std::uint64_t changed = row.changed_in_column[column];
  const unsigned shade = shade_of(changed, bytes_of_column(map, column));
  if (shade == 0) return;
  svg += fmt::format(
      R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#{:06x}"><title>{}: {} from {} on</title></rect>)"
      "\n",
      kNamesWidth + static_cast<int>(column) * kCellWidth, y, kCellWidth, kCellHeight - 2,
      kColors[shade], in_markup(row.version.name), human_bytes(changed), column * map.column_bytes);
}

}  // namespace

unsigned shade_of(std::uint64_t bytes_changed, std::uint64_t bytes) noexcept {
  const double share = static_cast<double>(bytes_changed) / static_cast<double>(bytes);
  unsigned shade = 0;
  while (shade < kMax.size() && share > kMax[shade]) ++shade;
  return shade;
}

std::uint32_t color_of(unsigned shade) noexcept { return kColors[shade]; }

std::uint64_t bytes_of_column(const HeatMap& map, std::size_t column) noexcept {
  const std::uint64_t begin = column * map.column_bytes;
  return std::min(map.column_bytes, map.region_bytes - begin);
}

void print_heat(Output& out, const HeatMap& map, bool utf8) {
  const auto& cells = utf8 ? kBlocks : kAscii;
  const char* const edge = utf8 ? "│" : "|";
  using enum Table::Align;
  using enum Table::Narrowing;
  Table table(
      {{"version", left, 2, cut}, {"time", left, 1, shorten_time}, {"changed", right}, {"", left}});
  for (auto row = map.rows.rbegin(); row != map.rows.rend(); ++row) {
    std::string drawing = edge;
    for (std::size_t i = 0; i < row->changed_in_column.size(); ++i)
      drawing += cells[shade_of(row->changed_in_column[i], bytes_of_column(map, i))];
    table.add({printable(row->version.name), out.time(shown_time(row->version)),
               human_bytes(row->bytes_changed), drawing + edge});
  }
  table.print(out);
  std::string shades;
  const char* const meanings[] = {"below 1 %", "10 %", "40 %", "80 %", "more"};
  for (std::size_t i = 1; i < kShades; ++i)
    shades += fmt::format("  {} {}", cells[i], meanings[i - 1]);
  const std::string scale =
      fmt::format("a column is {} of {}; changed in a version:", human_bytes(map.column_bytes),
                  human_bytes(map.region_bytes));
  const auto screen = screen_columns();
  const bool fits = !screen || text_columns(scale) + text_columns(shades) <= *screen;
  out.print("\n{}{}{}\n", scale, fits ? "" : "\n", shades);
}

std::string heat_svg(const HeatMap& map) {
  const std::size_t columns = map.rows.empty() ? 0 : map.rows[0].changed_in_column.size();
  const int width = kNamesWidth + static_cast<int>(columns) * kCellWidth + kMargin;
  const int height = kTop + static_cast<int>(map.rows.size()) * kCellHeight + kMargin;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}")"
      R"( font-family="sans-serif" font-size="11">)"
      "\n"
      R"(<rect width="{0}" height="{1}" fill="white"/>)"
      "\n"
      R"(<text x="{2}" y="20" font-size="13">Changes since '{3}': a column is {4} of {5})"
      "</text>\n",
      width, height, kMargin, in_markup(map.first.name), human_bytes(map.column_bytes),
      human_bytes(map.region_bytes));
  int y = kTop;
  for (auto row = map.rows.rbegin(); row != map.rows.rend(); ++row, y += kCellHeight) {
    svg += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)"
                       R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#{:06x}"/>)"
                       "\n",
                       kNamesWidth - kMargin, y + kCellHeight - 4, in_markup(row->version.name),
                       kNamesWidth, y, static_cast<int>(columns) * kCellWidth, kCellHeight - 2,
                       kColors[0]);
    for (std::size_t i = 0; i < columns; ++i) add_svg_cell(svg, map, *row, i, y);
  }
  return svg + "</svg>\n";
}

}  // namespace vellum::cli
