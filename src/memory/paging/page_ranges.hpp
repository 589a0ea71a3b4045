// memory/paging/page_ranges.hpp: neighbours in an ascending list of pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/wire/types.hpp"

namespace vellum::region {

// Calls visit(first, count) for each range of neighbours, at most `limit` long.
template <typename Visit>
void for_ranges(std::span<const format::PageNumber> pages, std::size_t limit, const Visit& visit) {
  for (std::size_t i = 0; i < pages.size();) {
    std::size_t n = 1;
    while (n < limit && i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    visit(pages[i], n);
    i += n;
  }
}

}  // namespace vellum::region
