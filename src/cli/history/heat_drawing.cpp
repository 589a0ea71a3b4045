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

constexpr std::array<const char*, kShades> kMeanings{"nothing", "below 1 %", "10 %",
                                                     "40 %",    "80 %",      "more"};

constexpr int kCellWidth = 8, kCellHeight = 14, kNamesWidth = 180, kMargin = 12, kTop = 76;
constexpr int kLegendY = 40, kAxisY = 64, kMinWidth = 640, kLegendStep = 90;
constexpr std::size_t kNameColumns = 26, kColumnsOfTick = 16;

int x_of(std::size_t column) { return kNamesWidth + static_cast<int>(column) * kCellWidth; }

std::size_t columns_of(const HeatMap& map) {
  return map.rows.empty() ? 0 : map.rows[0].changed_in_column.size();
}

// `inner`, which leads to `address`, if there is one. Tab stops at names, and not at each cell.
std::string linked(const std::string& address, bool is_cell, const std::string& inner) {
  if (address.empty()) return inner;
  return fmt::format(R"(<a href="{}"{}>{}</a>)", in_markup(address),
                     is_cell ? R"( tabindex="-1")" : "", inner);
}

std::string svg_text(int x, int y, const char* anchor, const std::string& text) {
  return fmt::format(R"(<text x="{}" y="{}" text-anchor="{}">{}</text>)", x, y, anchor,
                     in_markup(text));
}

std::string svg_cell(int x, int y, int width, unsigned shade, const std::string& title) {
  return fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="#{:06x}">{}</rect>)", x, y,
                     width, kCellHeight - 2, kColors[shade],
                     title.empty() ? "" : "<title>" + in_markup(title) + "</title>");
}

std::string svg_legend() {
  std::string svg = svg_text(kMargin, kLegendY, "start", "Changed of a column:");
  for (unsigned shade = 0; shade < kShades; ++shade) {
    const int x = kMargin + 122 + static_cast<int>(shade) * (kLegendStep - 8);
    svg +=
        fmt::format(R"(<rect x="{}" y="{}" width="12" height="12" fill="#{:06x}" stroke="#888"/>)",
                    x, kLegendY - 10, kColors[shade]) +
        svg_text(x + 16, kLegendY, "start", kMeanings[shade]);
  }
  return svg + "\n";
}

// Offsets above the columns.
std::string svg_axis(const HeatMap& map) {
  std::string svg;
  for (std::size_t column = 0; column < columns_of(map); column += kColumnsOfTick) {
    svg +=
        svg_text(x_of(column), kAxisY, "start", fmt::format("{:#x}", column * map.column_bytes)) +
        fmt::format(R"(<path d="M{} {}v6" stroke="#888"/>)", x_of(column), kAxisY + 3);
  }
  return svg + "\n";
}

std::string svg_row(const HeatMap& map, std::size_t index, int y, const HeatLink& link) {
  const HeatRow& row = map.rows[index];
  const std::string& before = (index == 0 ? map.first : map.rows[index - 1].version).name;
  const auto address = [&](std::uint64_t offset) {
    return link ? link(before, row.version.name, offset) : "";
  };
  std::string svg =
      linked(address(0), false,
             svg_text(kNamesWidth - kMargin, y + kCellHeight - 4, "end",
                      cut_text(row.version.name, kNameColumns, "…"))) +
      svg_cell(kNamesWidth, y, static_cast<int>(columns_of(map)) * kCellWidth, 0, "") + "\n";
  for (std::size_t i = 0; i < columns_of(map); ++i) {
    const std::uint64_t changed = row.changed_in_column[i], offset = i * map.column_bytes;
    const unsigned shade = shade_of(changed, bytes_of_column(map, i));
    if (shade == 0) continue;
    const std::string title =
        fmt::format("{}: {} from {} on", row.version.name, human_bytes(changed), offset);
    svg += linked(address(offset), true, svg_cell(x_of(i), y, kCellWidth, shade, title)) + "\n";
  }
  return svg;
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
  for (std::size_t i = 1; i < kShades; ++i)
    shades += fmt::format("  {} {}", cells[i], kMeanings[i]);
  const std::string scale =
      fmt::format("a column is {} of {}; changed in a version:", human_bytes(map.column_bytes),
                  human_bytes(map.region_bytes));
  const auto screen = screen_columns();
  const bool fits = !screen || text_columns(scale) + text_columns(shades) <= *screen;
  out.print("\n{}{}{}\n", scale, fits ? "" : "\n", shades);
}

std::string heat_svg(const HeatMap& map, const HeatLink& link) {
  const int width = std::max(kMinWidth, x_of(columns_of(map)) + kMargin);
  const int height = kTop + static_cast<int>(map.rows.size()) * kCellHeight + kMargin;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}")"
      R"( font-family="sans-serif" font-size="11">)"
      "\n"
      R"(<rect width="{0}" height="{1}" fill="white"/>)"
      "\n"
      R"(<text x="{2}" y="20" font-size="13">Changes since '{3}': a column is {4} of {5})"
      "</text>\n",
      width, height, kMargin, in_markup(cut_text(map.first.name, 2 * kNameColumns, "…")),
      human_bytes(map.column_bytes), human_bytes(map.region_bytes));
  svg += svg_legend() + svg_axis(map);
  int y = kTop;
  for (std::size_t i = map.rows.size(); i-- > 0; y += kCellHeight) svg += svg_row(map, i, y, link);
  return svg + "</svg>\n";
}

}  // namespace vellum::cli
