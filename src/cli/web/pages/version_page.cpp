// cli/web/pages/version_page.cpp: one version.
#include <fmt/format.h>

#include "cli/history/line.hpp"
#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

std::string facts_of(const VersionInfo& v) {
  HtmlTable table({"", ""});
  const auto add = [&](const char* name, const std::string& value) {
    table.add({{name}, {lines_in_markup(value)}});
  };
  add("kind", kind_name(v));
  add("branch", v.branch);
  add("commit", std::to_string(v.sequence));
  add("time of the commit", utc_time_full(v.committed_at));
  add("made", utc_time_full(v.created_at));
  add("size", fmt::format("{} ({} bytes)", human_bytes(v.file_bytes), v.file_bytes));
  if (v.file_bytes != v.region_bytes)
    add("region", fmt::format("{} ({} bytes)", human_bytes(v.region_bytes), v.region_bytes));
  add("changed", counted(v.pages_changed, "page"));
  add("added", human_bytes(v.bytes_added));
  add("message", v.message);
  return table.take();
}

// The command that puts the version back where its branch's file is, if it has one.
std::string restore_markup(const Store& store, const VersionInfo& v) {
  std::string file = "FILE";
  if (store.contains(v.branch)) {
    const auto image = store.branch_image(v.branch);
    if (image) file = image->path;
  }
  return command_field("To restore a file:", {"vellum", "restore", store.path(), v.name, file});
}

std::string version_links(const VersionInfo& v) {
  const std::string name = in_query(v.name);
  return "<p class=\"links\">" + link_to("bytes?version=" + name, "Bytes") + " " +
         link_to("heat?versions=" + name, "Heat of its line") + " " +
         link_to(".?from=" + name, "Compare") + " " +
         link_to("download?version=" + name,
                 fmt::format("Download ({})", human_bytes(v.file_bytes))) +
         "</p>\n";
}

}  // namespace

Content version_page(const Store& store, const Request& request) {
  const VersionInfo v = store.version(resolve_version(store, request.parameter("name")));
  std::string markup = facts_of(v) + version_links(v) + restore_markup(store, v);
  const auto parent = existing_parent(store, v);
  markup += parent ? "<h2>" + in_markup(diff_title(parent->name, v.name)) + "</h2>\n" +
                         neighbour_links(store, *parent, v) +
                         changes_between(store, parent->name, v.name, 0)
                   : "<p>No earlier version on its line exists any more.</p>\n";
  return {v.name, std::move(markup)};
}

}  // namespace vellum::cli
