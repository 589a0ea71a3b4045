// cli/history/markup.hpp: text within HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace vellum::cli {

// `text` as the content of an element, or of an attribute in double quotes. Names and messages are
// from a possibly untrusted store: the result has no markup of theirs, and no control characters.
std::string in_markup(std::string_view text);

}  // namespace vellum::cli
