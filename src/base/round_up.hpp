// base/round_up.hpp: the next multiple of a unit.
#pragma once

#include <cassert>
#include <cstdint>

namespace vellum::base {

// REQUIRES: unit != 0, and the result fits.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
  assert(unit != 0);
  return (value + unit - 1) / unit * unit;
}

}  // namespace vellum::base
