// cli/web/diff_page.cpp: one version, and the differences between two.
#include <fmt/format.h>

#include "base/fail.hpp"
#include "cli/history/change_stat.hpp"
#include "cli/history/line.hpp"
#include "cli/history/markup.hpp"
#include "cli/names/listing.hpp"
#include "cli/web/html.hpp"
#include "cli/web/pages.hpp"

namespace vellum::cli {
namespace {

constexpr std::size_t kMaxRanges = 500;

struct Compared {
  std::string a, b;
  ChangeStat stat;
  std::vector<ByteRange> first_ranges;
};

Compared compare_versions(const Store& store, const std::string& a, const std::string& b) {
  Compared result{a, b, {}, {}};
  result.stat = change_stat(store, a, b, [&](const ByteRange& range) {
    if (result.first_ranges.size() < kMaxRanges) result.first_ranges.push_back(range);
  });
  return result;
}

std::string link_to_bytes(const Compared& c, std::uint64_t offset) {
  return link_to(fmt::format("bytes?version={}&against={}&offset={}", in_query(c.b), in_query(c.a),
                             offset / 16 * 16),
                 std::to_string(offset));
}

std::string parts_table(const Compared& c) {
  std::uint64_t most = 0;
  for (const ChangedPart& part : c.stat.parts) most = std::max(most, part.bytes_different);
  HtmlTable table({"offset", "length", "pages", "changed", ""});
  for (const ChangedPart& part : c.stat.parts) {
    table.add({{link_to_bytes(c, part.offset_bytes), true},
               {human_bytes(length_of(c.stat, part)), true},
               {std::to_string(part.pages_different), true},
               {human_bytes(part.bytes_different), true},
               {bar(part.bytes_different, most)}});
  }
  return table.take();
}

std::string ranges_table(const Compared& c) {
  HtmlTable table({"offset", "bytes"});
  for (const ByteRange& range : c.first_ranges)
    table.add(
        {{link_to_bytes(c, range.offset_bytes), true}, {std::to_string(range.length_bytes), true}});
  return table.take();
}

std::string change_markup(const Compared& c) {
  if (c.stat.totals.ranges == 0 && c.stat.a_bytes == c.stat.b_bytes)
    return "<p>No difference.</p>\n";
  const std::string more = c.stat.totals.ranges > c.first_ranges.size()
                               ? fmt::format("<p>The first {} ranges:</p>\n", c.first_ranges.size())
                               : "<p>The ranges:</p>\n";
  return fmt::format("<p>{} in {} on {} since {}.</p>\n",
                     counted(c.stat.totals.bytes_different, "byte"),
                     counted(c.stat.totals.ranges, "range"),
                     counted(c.stat.totals.pages_different, "page"), link_to_version(c.a)) +
         parts_table(c) + more + ranges_table(c);
}

std::string facts_of(const VersionInfo& v) {
  HtmlTable table({"", ""});
  const auto add = [&](const char* name, const std::string& value) {
    table.add({{name}, {in_markup(value)}});
  };
  add("kind", kind_name(v));
  add("branch", v.branch);
  add("commit", std::to_string(v.sequence));
  add("time of the commit", utc_time_full(v.committed_at));
  add("made", utc_time_full(v.created_at));
  add("region", fmt::format("{} ({} bytes)", human_bytes(v.region_bytes), v.region_bytes));
  add("changed", counted(v.pages_changed, "page"));
  add("added", human_bytes(v.bytes_added));
  add("message", v.message);
  return table.take();
}

}  // namespace

Content version_page(const Store& store, const Request& request) {
  const VersionInfo v = store.version(resolve_version(store, request.parameter("name")));
  std::string markup = facts_of(v);
  markup += "<p>" + link_to("bytes?version=" + in_query(v.name), "Bytes") + " " +
            link_to("heat?versions=" + in_query(v.name), "Heat of its line") + "</p>\n";
  const auto parent = existing_parent(store, v);
  markup += parent ? change_markup(compare_versions(store, parent->name, v.name))
                   : "<p>No earlier version on its line exists any more.</p>\n";
  return {v.name, std::move(markup)};
}

Content diff_page(const Store& store, const Request& request) {
  const std::string a = resolve_version(store, request.parameter("a")),
                    b = resolve_version(store, request.parameter("b"));
  return {fmt::format("{} with {}", b, a), change_markup(compare_versions(store, a, b))};
}

}  // namespace vellum::cli
