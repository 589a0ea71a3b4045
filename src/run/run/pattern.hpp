// run/run/pattern.hpp: shell patterns in which * also matches slashes, as in fnmatch(3) without
// flags, but byte by byte. In a multibyte locale fnmatch(3) allocates and takes the locale's lock.
#pragma once

#include <cstddef>
#include <string_view>

namespace vellum::preload {

// Character classes of ASCII: [[:alpha:]] and so on.
constexpr bool is_of_class(std::string_view name, unsigned char c) noexcept {
  const bool digit = c >= '0' && c <= '9';
  const bool lower = c >= 'a' && c <= 'z', upper = c >= 'A' && c <= 'Z';
  if (name == "digit") return digit;
  if (name == "lower") return lower;
  if (name == "upper") return upper;
  if (name == "alpha") return lower || upper;
  if (name == "alnum") return digit || lower || upper;
  if (name == "xdigit") return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  if (name == "space") return c == ' ' || (c >= '\t' && c <= '\r');
  if (name == "blank") return c == ' ' || c == '\t';
  return name == "punct" && c > ' ' && c < 0x7f && !digit && !lower && !upper;
}

// `at`: after the [; on return after the ]. npos: there is no ], and the [ is a plain character.
constexpr bool is_in_brackets(std::string_view pattern, std::size_t& at, unsigned char c) noexcept {
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  bool found = false;
  std::size_t i = at + (negated ? 1 : 0);
  for (bool first = true;; first = false) {
    if (i >= pattern.size()) return at = std::string_view::npos, false;
    if (pattern[i] == ']' && !first) break;
    const std::size_t end =
        pattern.substr(i).starts_with("[:") ? pattern.find(":]", i + 2) : std::string_view::npos;
    if (end != std::string_view::npos) {
      found = found || is_of_class(pattern.substr(i + 2, end - i - 2), c);
      i = end + 2;
      continue;
    }
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    const auto low = static_cast<unsigned char>(pattern[i++]);
    auto high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') {
      ++i;
      if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
      high = static_cast<unsigned char>(pattern[i++]);
    }
    found = found || (low <= c && c <= high);
  }
  at = i + 1;
  return found != negated;
}

// Whether one element of the pattern, other than *, matches this byte; if so, `at` is set after it.
constexpr bool takes(std::string_view pattern, std::size_t& at, unsigned char c) noexcept {
  std::size_t next = at + 1;
  bool takes_it = pattern[at] == '?';
  if (pattern[at] == '[') {
    takes_it = is_in_brackets(pattern, next, c);
    if (next == std::string_view::npos) takes_it = c == '[', next = at + 1;
  } else if (!takes_it) {
    if (pattern[at] == '\\' && next < pattern.size()) ++at, ++next;
    takes_it = static_cast<unsigned char>(pattern[at]) == c;
  }
  if (takes_it) at = next;
  return takes_it;
}

// The last * matches one more byte whenever the rest does not match.
constexpr bool matches(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0, star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      taken = t;
    } else if (p < pattern.size() && takes(pattern, p, static_cast<unsigned char>(text[t]))) {
      ++t;
    } else if (star != std::string_view::npos) {
      p = star;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace vellum::preload
