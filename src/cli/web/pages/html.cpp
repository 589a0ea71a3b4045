#include "cli/web/pages/html.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

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
<a class="skip" href="#content">Skip to the content</a>
<nav><a href=".">Versions</a> <a href="sizes">Sizes</a> <a href="heat">Heat</a>
<form action="diff"><label>From <input name="a" placeholder="main~1" required></label>
<label>to <input name="b" placeholder="main" required></label> <button>Compare</button></form>
<form action="bytes"><label>Bytes of <input name="version" placeholder="main" required></label>
<label>from <input name="offset" placeholder="0x0"></label> <button>Show</button></form></nav>
<main id="content">
<h1>{0}</h1>
{1}</main>
</body>
</html>
)";

std::string quoted_for_shell(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::strchr("._+-/:=@%", c) != nullptr;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string page_of(std::string_view title, std::string_view body) {
  return fmt::format(kPage, in_markup(title), body);
}

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

std::string link_to_version(std::string_view name) { return link_to(version_address(name), name); }

std::string diff_address(std::string_view from, std::string_view to) {
  return "diff?a=" + in_query(from) + "&b=" + in_query(to);
}

std::string diff_title(std::string_view from, std::string_view to) {
  return fmt::format("{} → {}", from, to);
}

std::string link_to_diff(std::string_view from, std::string_view to) {
  return link_to(diff_address(from, to), diff_title(from, to));
}

std::string lines_in_markup(std::string_view text) {
  std::string markup;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    markup += (begin == 0 ? "" : "<br>") + in_markup(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return markup;
}

std::string command_field(std::string_view label, const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words)
    command += (command.empty() ? "" : " ") + quoted_for_shell(word);
  return fmt::format(
      "<label class=\"command\">{} <input readonly size=\"{}\" value=\"{}\"></label>\n",
      in_markup(label), command.size(), in_markup(command));
}

std::string version_address(std::string_view name) { return "version?name=" + in_query(name); }

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
