// cli/terminal/width.hpp: texts that fit the terminal's width.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

namespace vellum::cli {

// Columns of the terminal; none if the descriptor is a file or a pipe, which take lines of any
// length.
std::optional<std::size_t> screen_columns(int fd = STDOUT_FILENO);

// Columns that `text` takes on a terminal, about: one for each code point.
std::size_t text_columns(std::string_view text);

// At most `columns` of `text`; a cut one ends with `ellipsis`.
std::string cut_text(const std::string& text, std::size_t columns, std::string_view ellipsis);

// `text` with lines of at most `columns`, broken at spaces. A line continues below its second
// column, which follows two spaces, or below its first word. A longer word stays whole.
std::string wrapped(std::string_view text, std::size_t columns);

// The same for the terminal at `fd`; anything else gets `text` unchanged.
std::string wrapped_for_screen(std::string_view text, int fd = STDOUT_FILENO);

}  // namespace vellum::cli
