// store/branch/checkpoint/page_difference.hpp: the pages in which two versions differ, as writes.
#pragma once

#include <span>
#include <vector>

#include "format/wire/superblock.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

// The pages of a piece at most.
inline constexpr std::size_t kPagesOfAPiece = 512;

// The writes that make the content of `pages` in `before` that in `source`; a null `before` stands
// for zero pages. Throws the errors of PageSource::read(). REQUIRES: `pages` ascend.
std::vector<PageWrites> page_writes(const format::Encoding& encoding, const PageSource& source,
                                    const PageSource* before,
                                    std::span<const format::PageNumber> pages);
// The number of pages that they write.
std::uint64_t pages_in(const std::vector<PageWrites>& pieces);

}  // namespace vellum::store
