// cli/web/versions_page.cpp: the graph of versions, and their sizes.
#include <algorithm>

#include <fmt/format.h>

#include "cli/history/markup.hpp"
#include "cli/history/space.hpp"
#include "cli/names/listing.hpp"
#include "cli/names/version_graph.hpp"
#include "cli/web/html.hpp"
#include "cli/web/pages.hpp"

namespace vellum::cli {
namespace {

void add_version(HtmlTable& table, const VersionInfo& v) {
  table.add({{link_to_version(v.name)},
             {kind_name(v)},
             {utc_time(shown_time(v))},
             {human_bytes(v.file_bytes), true},
             {std::to_string(v.pages_changed), true},
             {human_bytes(v.bytes_added), true},
             {v.parent.empty() ? "" : link_to_diff(v.parent, v.name)},
             {in_markup(first_line(v.message))}});
}

}  // namespace

Content versions_page(const Store& store, const Request&) {
  std::vector<VersionInfo> versions = store.versions();
  sort_newest_first(versions);
  if (versions.empty()) return {store.path(), "<p>There is no version yet.</p>\n"};
  const std::vector<GraphRow> rows = graph_of(versions);
  HtmlTable table({"version", "kind", "time", "size", "changed pages", "added", "", "message"});
  for (const GraphRow& row : rows) {
    if (row.version) add_version(table, *row.version);
  }
  return {store.path(), graph_svg(rows) + R"(<div class="wide">)" + table.take() + "</div>\n"};
}

Content sizes_page(const Store& store, const Request&) {
  const StoreStat stat = store.stat();
  std::vector<VersionInfo> versions = store.versions();
  sort_newest_first(versions);
  std::uint64_t most = 0;
  for (const VersionSpace& space : stat.versions)
    most = std::max(most, space.unique_bytes + space.shared_bytes);
  HtmlTable table({"version", "own", "", "shared", "", "full copy"});
  for (const VersionInfo& v : versions) {
    const VersionSpace space = space_of(stat, v);
    table.add({{link_to_version(v.name)},
               {human_bytes(space.unique_bytes), true},
               {bar(space.unique_bytes, most)},
               {human_bytes(space.shared_bytes), true},
               {bar(space.shared_bytes, most)},
               {human_bytes(space.nonzero_bytes), true}});
  }
  const std::string totals = fmt::format(
      "<p>On disk {}; in packs {}; versions need {} of that, and gc would free {}. Full copies of "
      "all versions would take {}.</p>\n<p>Own bytes are needed by no other version.</p>\n",
      human_bytes(stat.stored_bytes), human_bytes(stat.pack_bytes),
      human_bytes(stat.pack_needed_bytes), human_bytes(stat.pack_freeable_bytes),
      human_bytes(stat.full_copy_bytes));
  return {"Sizes", totals + table.take()};
}

}  // namespace vellum::cli
