// cli/history/markup.hpp: text within HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace vellum::cli {

// `text` as the content of an element, or of an attribute in double quotes. Names and messages come
// from a store that someone else may have written: no markup of theirs is left, and no control
// character.
std::string in_markup(std::string_view text);

}  // namespace vellum::cli
