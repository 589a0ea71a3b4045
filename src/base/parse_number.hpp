// base/parse_number.hpp: parses a number.
#pragma once

#include <cassert>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace vellum::base {

// The whole text must be the number, without plus sign, spaces, or a prefix such as 0x. nullopt:
// any other text, or the number does not fit.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  assert(base >= 2 && base <= 36);
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number, base);
  if (problem != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace vellum::base
