// cli/web/pages/heat_page.cpp: the changes of a region, by part and version.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/heat_drawing.hpp"
#include "cli/history/line.hpp"
#include "cli/history/markup.hpp"
#include "cli/web/pages/byte_text.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kHeatColumns = 128;
constexpr std::size_t kMaxHeatVersions = 400;  // a page with more would take minutes

}  // namespace

Content heat_page(const Store& store, const Request& request) {
  const std::string stretch = request.parameter("versions");
  std::vector<VersionInfo> versions = versions_of(store, stretch);
  std::string note;
  if (versions.size() > kMaxHeatVersions) {
    versions.erase(versions.begin(), versions.end() - kMaxHeatVersions);
    note = fmt::format("<p>The last {} versions.</p>\n", kMaxHeatVersions);
  }
  const HeatMap map = heat_of(store, versions, kHeatColumns, nullptr);
  const std::string form = fmt::format(
      "<form action=\"heat\"><label>Versions <input name=\"versions\" value=\"{}\" "
      "placeholder=\"A..B\"></label> <button>Draw</button></form>\n",
      in_markup(stretch));
  const auto link = [](const std::string& before, const std::string& version,
                       std::uint64_t offset) {
    return diff_address(before, version) + (offset == 0 ? "" : "&from=" + hex_offset(offset));
  };
  return {"Heat",
          form + note + R"(<div class="wide" tabindex="0">)" + heat_svg(map, link) + "</div>\n"};
}

}  // namespace vellum::cli
