// memory/cards/marked_pages.hpp: sorted lists of marked pages taken from cards.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <iterator>
#include <vector>

#include "memory/cards/tracked_range.hpp"

namespace vellum::cards {

inline bool by_page(const MarkedPage& a, const MarkedPage& b) { return a.page < b.page; }

// REQUIRES: both ascending, each page once. So is the result.
inline std::vector<MarkedPage> united(const std::vector<MarkedPage>& a,
                                      const std::vector<MarkedPage>& b) {
  assert(std::is_sorted(a.begin(), a.end(), by_page) &&
         std::is_sorted(b.begin(), b.end(), by_page));
  std::vector<MarkedPage> out;
  out.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out), by_page);
  std::size_t kept = 0;
  for (const MarkedPage& page : out) {
    if (kept != 0 && out[kept - 1].page == page.page) {
      out[kept - 1].cards |= page.cards;
    } else {
      out[kept++] = page;
    }
  }
  out.resize(kept);
  return out;
}

// The cards of a page; 0 when it is not listed. REQUIRES: ascending.
inline std::uint64_t cards_of(const std::vector<MarkedPage>& pages, std::uint32_t page) {
  const auto at = std::lower_bound(pages.begin(), pages.end(), MarkedPage{page, 0}, by_page);
  return at != pages.end() && at->page == page ? at->cards : 0;
}

}  // namespace vellum::cards
