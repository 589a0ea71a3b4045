// cli/commands/history/cmd_heat.cpp: vellum heat: draws a map of the changes of a region, version
// by version.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/fail.hpp"
#include "base/files/file.hpp"
#include "base/files/new_file.hpp"
#include "cli/history/heat_drawing.hpp"
#include "cli/history/line.hpp"
#include "cli/terminal/command.hpp"
#include "cli/terminal/exit_status.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/table.hpp"

namespace vellum::cli {
namespace {

constexpr std::uint32_t kMaxColumns = 4096;
constexpr std::size_t kDefaultColumns = 64;  // of a drawing in a file or a pipe
constexpr std::size_t kMinColumns = 16;
constexpr std::size_t kBesideDrawing = 38;  // time, size, edges and gaps

struct HeatArguments {
  std::string store;
  std::string stretch;
  std::optional<std::uint32_t> columns;
  bool svg = false;
  std::optional<std::string> png;
};

// The columns that fit on the terminal's lines next to the names.
std::size_t default_columns(const std::vector<VersionInfo>& versions) {
  const auto screen = screen_columns();
  if (!screen) return kDefaultColumns;
  std::size_t names = 0;
  for (const VersionInfo& v : versions) names = std::max(names, text_columns(printable(v.name)));
  return std::max(kMinColumns, *screen - std::min(*screen, names + kBesideDrawing));
}

Json json_of(const Store& store, const HeatMap& map) {
  Json rows = Json::array();
  for (auto row = map.rows.rbegin(); row != map.rows.rend(); ++row) {
    rows.push_back(Json{{"version", row->version.name},
                        {"bytes_changed", row->bytes_changed},
                        {"columns", row->changed_in_column}});
  }
  return Json{{"store", store.path()},
              {"since", map.first.name},
              {"region_bytes", map.region_bytes},
              {"column_bytes", map.column_bytes},
              {"rows", std::move(rows)}};
}

int write_png(Context& context, const Store& store, const HeatMap& map, const std::string& file) {
  if (map.rows.empty())
    fail(Errc::invalid_argument, "'{}' is the only version of its line: there is nothing to draw",
         map.first.name);
  const Png png = heat_png(map);
  base::NewFile picture(base::posix_fs(), file);
  picture.file().pwrite(png.bytes, 0);
  picture.replace();
  context.report(
      Json{{"store", store.path()}, {"file", file}, {"width", png.width}, {"height", png.height}},
      fmt::format("wrote {}: {} x {} pixels", file, png.width, png.height));
  return kExitOk;
}

int run_heat(Context& context, const HeatArguments& arguments) {
  if (arguments.columns && (*arguments.columns == 0 || *arguments.columns > kMaxColumns))
    fail(Errc::invalid_argument, "--columns takes 1 to {}", kMaxColumns);
  if (arguments.svg && context.json)
    fail(Errc::invalid_argument, "--svg and --json exclude each other");
  if (arguments.svg && arguments.png)
    fail(Errc::invalid_argument, "--svg and --png exclude each other");
  const Store store = Store::open(arguments.store);
  const auto versions = versions_of(store, arguments.stretch);
  const HeatMap map = [&] {
    ProgressMeter meter("heat", context.progress_wanted());
    return heat_of(store, versions, arguments.columns.value_or(default_columns(versions)),
                   meter.callback());
  }();
  if (arguments.png) return write_png(context, store, map, *arguments.png);
  if (context.json) {
    context.out.print_json(json_of(store, map));
  } else if (arguments.svg) {
    context.out.write(heat_svg(map));
  } else if (map.rows.empty()) {
    context.explain(fmt::format("'{}' is the only version of its line: nothing to compare it with",
                                map.first.name));
  } else {
    print_heat(context.out, map, screen_takes_utf8());
  }
  return kExitOk;
}

}  // namespace

void add_heat(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<HeatArguments>();
  CLI::App* command = add_command(
      app, context, "heat", "Draw a map of the changes of a region, version by version",
      arguments->store, [&context, arguments] { return run_heat(context, *arguments); });
  command->add_option("A..B", arguments->stretch,
                      "The versions from A to B, or all of B's line (default: main)");
  command->add_option("--columns", arguments->columns, "The maximum number of columns")
      ->type_name("N");
  command->add_flag("--svg", arguments->svg, "Write an SVG picture to standard output");
  command->add_option("--png", arguments->png, "Write a PNG picture to this file")
      ->type_name("FILE");
}

}  // namespace vellum::cli
