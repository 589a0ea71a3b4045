// store/packs/encode/next_block.hpp: which pages share a block.
#pragma once

#include <cstddef>
#include <span>

#include "format/wire/types.hpp"

namespace vellum::store {

// Takes the next block off the pages (ascending, not empty). Blocks follow the aligned blocks of
// the region where enough pages of one changed; a few scattered pages share one.
inline std::span<const format::PageNumber> next_block(std::span<const format::PageNumber>& pages,
                                                      std::size_t block_pages) {
  std::size_t n = 1;
  while (n < pages.size() && n < block_pages) {
    const bool crosses = pages[n] / block_pages != pages[n - 1] / block_pages;
    if (crosses && n >= block_pages / 2) break;
    ++n;
  }
  const auto block = pages.first(n);
  pages = pages.subspan(n);
  return block;
}

}  // namespace vellum::store
