// cli/web/heat_page.cpp: the changes of a region, by part and version.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/heat_drawing.hpp"
#include "cli/history/line.hpp"
#include "cli/history/markup.hpp"
#include "cli/web/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kColumns = 128;
constexpr std::size_t kMaxVersions = 400;  // a page with more would take minutes

}  // namespace

Content heat_page(const Store& store, const Request& request) {
  const std::string stretch = request.parameter("versions");
  std::vector<VersionInfo> versions = versions_of(store, stretch);
  std::string note;
  if (versions.size() > kMaxVersions) {
    versions.erase(versions.begin(), versions.end() - kMaxVersions);
    note = fmt::format("<p>The last {} versions.</p>\n", kMaxVersions);
  }
  const HeatMap map = heat_of(store, versions, kColumns, nullptr);
  const std::string form = fmt::format(
      "<form action=\"heat\">Versions <input name=\"versions\" value=\"{}\" placeholder=\"A..B\"> "
      "<button>Draw</button></form>\n",
      in_markup(stretch));
  return {"Heat", form + note + R"(<div class="wide">)" + heat_svg(map) + "</div>\n"};
}

}  // namespace vellum::cli
