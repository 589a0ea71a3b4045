// store/branch/page_copy.hpp: a copy of an existing version's pages as part of a commit.
#pragma once

#include <cstdint>
#include <span>

#include "store/branch/branch_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Adds the pages, of those given (ascending), in which `source` differs from `before`, the head of
// the branch that is committed to; a null `before` means zero pages. Returns how many it added.
// Throws as PageSource::read() does.
std::uint64_t add_pages(BranchWriter::Commit& commit, const format::Encoding& encoding,
                        const PageSource& source, const PageSource* before,
                        std::span<const format::PageNumber> pages);

}  // namespace vellum::store
