// memory/paging/bits.hpp: words that hold one bit for each of up to 64 pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::region {

// The lowest n bits.
constexpr std::uint64_t bits_below(std::size_t n) noexcept {
  return n >= 64 ? ~0ULL : (1ULL << n) - 1;
}

// Calls visit(first, count) for each range of set bits; stops when it returns anything but 0.
template <typename Visit>
int for_each_bit_range(std::uint64_t bits, Visit visit) noexcept {
  while (bits != 0) {
    const auto first = static_cast<std::size_t>(__builtin_ctzll(bits));
    const std::uint64_t rest = ~(bits >> first);
    const auto count = rest == 0 ? 64 - first : static_cast<std::size_t>(__builtin_ctzll(rest));
    if (const int error = visit(first, count); error != 0) return error;
    bits &= ~(bits_below(count) << first);
  }
  return 0;
}

}  // namespace vellum::region
