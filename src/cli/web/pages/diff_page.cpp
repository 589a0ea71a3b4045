// cli/web/pages/diff_page.cpp: the differences between two versions.
#include <algorithm>

#include <fmt/format.h>

#include "cli/history/change_stat.hpp"
#include "cli/history/line.hpp"
#include "cli/names/listing.hpp"
#include "cli/options/arguments.hpp"
#include "cli/web/pages/byte_text.hpp"
#include "cli/web/pages/change_list.hpp"
#include "cli/web/pages/html.hpp"
#include "cli/web/pages/pages.hpp"

namespace vellum::cli {
namespace {

std::string parts_table(const ChangeStat& stat, const std::string& address) {
  std::uint64_t most = 0;
  for (const ChangedPart& part : stat.parts) most = std::max(most, part.bytes_different);
  HtmlTable table({"part", "length", "pages", "changed", ""});
  for (const ChangedPart& part : stat.parts) {
    const std::string offset = hex_offset(part.offset_bytes);
    table.add({{link_to(address + "&from=" + offset, offset), true},
               {human_bytes(length_of(stat, part)), true},
               {std::to_string(part.pages_different), true},
               {human_bytes(part.bytes_different), true},
               {bar(part.bytes_different, most)}});
  }
  return table.take();
}

std::string page_links(const ChangeList& list, const std::string& address) {
  std::string markup;
  const auto add = [&](const std::optional<std::uint64_t>& from, const char* text) {
    if (from) markup += link_to(address + "&from=" + hex_offset(*from), text) + " ";
  };
  add(list.page_before(), "Previous changes");
  add(list.next_page(), "Next changes");
  return markup.empty() ? "" : "<p class=\"links\">" + markup + "</p>\n";
}

}  // namespace

std::string neighbour_links(const Store& store, const VersionInfo& a, const VersionInfo& b) {
  std::string before, after;
  if (const auto parent = existing_parent(store, a))
    before = "Before: " + link_to_diff(parent->name, a.name) + ". ";
  for (const VersionInfo& v : store.versions()) {
    const auto parent = existing_parent(store, v);
    if (parent && parent->name == b.name) after += " " + link_to_diff(b.name, v.name);
  }
  if (!after.empty()) after = "After:" + after + ".";
  return before.empty() && after.empty() ? "" : "<p>" + before + after + "</p>\n";
}

std::string changes_between(const Store& store, const std::string& a, const std::string& b,
                            std::uint64_t from) {
  ChangeList list(from);
  const ChangeStat stat =
      change_stat(store, a, b, [&](const ByteRange& range) { list.add(range); });
  list.end();
  if (stat.totals.ranges == 0 && stat.a_bytes == stat.b_bytes) return "<p>No difference.</p>\n";
  const std::string address = diff_address(a, b), links = page_links(list, address);
  return fmt::format(
             "<p>{} in {} on {}: - is {}, + is {}.</p>\n",
             counted(stat.totals.bytes_different, "byte"), counted(stat.totals.ranges, "range"),
             counted(stat.totals.pages_different, "page"), link_to_version(a), link_to_version(b)) +
         parts_table(stat, address) + "<h2>Changes</h2>\n" + links +
         changes_markup(store, a, b, list.shown()) + links;
}

Content diff_page(const Store& store, const Request& request) {
  const std::string a = resolve_version(store, request.parameter("a")),
                    b = resolve_version(store, request.parameter("b"));
  const std::string from = request.parameter("from");
  return {diff_title(a, b),
          neighbour_links(store, store.version(a), store.version(b)) +
              changes_between(store, a, b, from.empty() ? 0 : parse_size("from", from))};
}

}  // namespace vellum::cli
