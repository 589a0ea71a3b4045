// cli/web/pages/versions_page.cpp: the graph of versions, and their sizes.
#include <algorithm>

#include <fmt/format.h>

#include "cli/history/markup.hpp"
#include "cli/history/space.hpp"
#include "cli/names/listing.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
Content versions_page(const Store& store, const Request& request) {
  std::vector<VersionInfo> versions = store.versions();
  sort_newest_first(versions);
  if (versions.empty()) return {store.path(), "<p>There is no version yet.</p>\n"};
  const std::string from = request.parameter("from");
  const std::string chosen = from.empty() ? "" : store.version(resolve_version(store, from)).name;
  std::string note;
  if (!chosen.empty())
    note = fmt::format(
        "<p class=\"chosen\">{} is chosen: choose the version to compare with. {}</p>\n",
        link_to_version(chosen), link_to(".", "Cancel"));
  return {store.path(), note + graph_markup(graph_of(versions), chosen)};
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
