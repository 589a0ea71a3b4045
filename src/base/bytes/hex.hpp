// base/bytes/hex.hpp: bytes as text.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vellum::base {

// Two lower-case digits for each byte.
inline std::string hex(std::span<const std::byte> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    out.push_back(kDigits[std::to_integer<unsigned>(b) >> 4]);
    out.push_back(kDigits[std::to_integer<unsigned>(b) & 15]);
  }
  return out;
}

}  // namespace vellum::base
