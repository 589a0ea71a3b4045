#include "cli/web/html.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/history/markup.hpp"

namespace vellum::cli {
namespace {

constexpr std::string_view kPage = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{0} - Vellum</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav><a href=".">Versions</a> <a href="sizes">Sizes</a> <a href="heat">Heat</a>
<form action="diff">Compare <input name="a" placeholder="main~1" required>
with <input name="b" placeholder="main" required> <button>Diff</button></form>
<form action="bytes">Bytes of <input name="version" placeholder="main" required>
from <input name="offset" placeholder="0"> <button>Show</button></form></nav>
<h1>{0}</h1>
{1}</body>
</html>
)";

constexpr std::string_view kStyle = R"(:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 2rem 3rem; }
nav { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; padding: 0.8rem 0; border-bottom: 1px solid #8886; }
nav form { display: inline; }
input { width: 9rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; }
th { text-align: left; border-bottom: 1px solid #888; }
th, td { padding: 0.1rem 0.8rem 0.1rem 0; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { font: 14px/1.45 ui-monospace, monospace; white-space: pre; }
pre mark { background: #fc8d59; color: black; }
.wide { overflow-x: auto; }
.picture { overflow: auto; max-height: 70vh; margin: 1rem 0; }
.versions text { font: 13px system-ui, sans-serif; fill: currentColor; }
.versions a { fill: LinkText; color: LinkText; }
.versions .faint { opacity: 0.65; }
.versions path { fill: none; stroke: currentColor; stroke-width: 2; }
.versions circle { fill: currentColor; }
.versions .head { fill: Canvas; stroke: currentColor; stroke-width: 3; }
.legend span::before { content: "\25CF  "; }
.lane0 { color: #2b83ba; } .lane1 { color: #d7301f; } .lane2 { color: #31a354; }
.lane3 { color: #b8860b; } .lane4 { color: #756bb1; } .lane5 { color: #636363; }
meter { width: 12rem; }
.error { color: #d7301f; }
)";

}  // namespace

std::string page_of(std::string_view title, std::string_view body) {
  return fmt::format(kPage, in_markup(title), body);
}

std::string_view style_sheet() noexcept { return kStyle; }

std::string in_query(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string link_to(std::string_view page_and_query, std::string_view text) {
  return fmt::format(R"(<a href="{}">{}</a>)", in_markup(page_and_query), in_markup(text));
}

std::string link_to_version(std::string_view name) { return link_to(version_page(name), name); }

std::string link_to_diff(std::string_view from, std::string_view to) {
  return link_to("diff?a=" + in_query(from) + "&b=" + in_query(to), "diff");
}

std::string version_page(std::string_view name) { return "version?name=" + in_query(name); }

std::string bar(std::uint64_t value, std::uint64_t most) {
  return fmt::format(R"(<meter value="{}" max="{}"></meter>)", value,
                     std::max<std::uint64_t>(most, 1));
}

HtmlTable::HtmlTable(const std::vector<std::string_view>& head) : markup_("<table>\n<tr>") {
  for (const std::string_view cell : head) markup_ += fmt::format("<th>{}</th>", in_markup(cell));
  markup_ += "</tr>\n";
}

void HtmlTable::add(const std::vector<Cell>& cells) {
  markup_ += "<tr>";
  for (const Cell& cell : cells) {
    markup_ += cell.is_number ? R"(<td class="number">)" : "<td>";
    markup_ += cell.markup + "</td>";
  }
  markup_ += "</tr>\n";
}

std::string HtmlTable::take() { return std::move(markup_) + "</table>\n"; }

}  // namespace vellum::cli
