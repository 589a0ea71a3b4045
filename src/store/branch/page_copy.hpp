// store/branch/page_copy.hpp: pages of an existing version as part of a commit.
#pragma once

#include <cstdint>
#include <span>

#include "store/branch/branch_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Adds to `commit` those of `pages` whose content in `source` differs from that in `before`, the head
// of the commit's branch. A null `before` stands for zero pages. Returns the number of pages added.
// Throws the errors of PageSource::read(). REQUIRES: `pages` ascend.
std::uint64_t add_pages(BranchWriter::Commit& commit, const format::Encoding& encoding,
                        const PageSource& source, const PageSource* before,
                        std::span<const format::PageNumber> pages);

}  // namespace vellum::store
