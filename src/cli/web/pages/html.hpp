// cli/web/pages/html.hpp: the building blocks of all pages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vellum::cli {

// A whole page: `body` is markup, `title` is text.
std::string page_of(std::string_view title, std::string_view body);

// The style of all pages: a separate file, because pages may not contain styles.
std::string_view style_sheet() noexcept;

// `text` as a value in the query of a URL.
std::string in_query(std::string_view text);

// A link to a page of the site; `text` is text.
std::string link_to(std::string_view page_and_query, std::string_view text);
std::string link_to_version(std::string_view name);
std::string diff_address(std::string_view from, std::string_view to);
// "FROM → TO".
std::string diff_title(std::string_view from, std::string_view to);
std::string link_to_diff(std::string_view from, std::string_view to);

// Text with line breaks, each shown as such.
std::string lines_in_markup(std::string_view text);

// A command for a shell, in a field whose content a click or Tab selects. `words` are quoted where
// a shell needs it.
std::string command_field(std::string_view label, const std::vector<std::string>& words);

// The address of the page about a version.
std::string version_address(std::string_view name);

// A bar as long as the share of `most`.
std::string bar(std::uint64_t value, std::uint64_t most);

struct Cell {
  std::string markup;
  bool is_number = false;  // and is aligned to the right
};

// A table: the head's texts, then rows.
class HtmlTable {
 public:
  explicit HtmlTable(const std::vector<std::string_view>& head);
  void add(const std::vector<Cell>& cells);
  std::string take();

 private:
  std::string markup_;
};

}  // namespace vellum::cli
