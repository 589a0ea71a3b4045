// cli/terminal/screen.hpp: the terminal behind standard output.
#pragma once

#include <cstddef>
#include <optional>

namespace vellum::cli {

// Columns of the terminal; none if standard output is a file or a pipe, which take lines of any
// length.
std::optional<std::size_t> screen_columns();

// Whether the user's locale has UTF-8. The program itself runs in the locale C.
bool screen_takes_utf8();

}  // namespace vellum::cli
