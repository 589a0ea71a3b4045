// base/parse_number.hpp: numbers out of text that holds nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace vellum::base {

// All of the text is the number: no sign of a plus, no space, no prefix such as 0x. Nothing: it is
// another text, or the number does not fit.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number, base);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace vellum::base
