// memory/paging/bits.hpp: words with one bit for each of up to 64 pages, and ranges of pages.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "format/wire/types.hpp"

namespace vellum::region {

// The lowest n bits.
constexpr std::uint64_t bits_below(std::size_t n) noexcept {
  return n >= 64 ? ~0ULL : (1ULL << n) - 1;
}

// Calls visit(first, count) for each range of set bits; stops and returns the result if it is not
// 0.
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

// Calls visit(first, count) for each range of neighbours in an ascending list, at most `limit`
// long.
template <typename Visit>
void for_ranges(std::span<const format::PageNumber> pages, std::size_t limit, const Visit& visit) {
  assert(limit != 0);
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    while (n < limit && i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    visit(pages[i], n);
    i += n;
  }
}

}  // namespace vellum::region
