// base/bytes/mix64.hpp: Murmur3's finaliser, for hash tables of numbers.
#pragma once

#include <cstdint>

namespace vellum::base {

// Every input bit affects every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

}  // namespace vellum::base
