// store/branch/page_copy.hpp: pages of a version that exists, written again as part of a commit.
#pragma once

#include <cstdint>
#include <span>

#include "store/branch/branch_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Adds those of the pages (ascending) in which `source` differs from `before`, or from zero when
// that is null: the head of the branch that is committed to. How many there were. Throws as
// PageSource::read() does.
std::uint64_t add_pages(BranchWriter::Commit& commit, const format::Encoding& encoding,
                        const PageSource& source, const PageSource* before,
                        std::span<const format::PageNumber> pages);

}  // namespace vellum::store
