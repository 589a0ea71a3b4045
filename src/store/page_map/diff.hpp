// store/page_map/diff.hpp: the difference between two versions, at a cost that depends on its size.
#pragma once

#include <functional>
#include <vector>

#include <vellum/byte_range.hpp>
#include <vellum/report.hpp>

#include "format/working_set.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::store {

// Calls `visit` for every maximal range of differing bytes, ascending. A shorter region counts as
// zero beyond its end. Runs of the page map that both versions share are not read. Of the other runs,
// only pages whose chains differ are read.
DiffTotals diff_versions(PackStore& store, const ResolvedVersion& a, const ResolvedVersion& b,
                         const std::function<void(const ByteRange&)>& visit);

// The ranges that may differ, ascending and disjoint, up to the end of the larger region.
std::vector<format::PageRange> ranges_that_may_differ(const PageSource& a,
                                                      const ResolvedVersion& va,
                                                      const PageSource& b,
                                                      const ResolvedVersion& vb);

// The pages that may differ, ascending, for callers that compare the content themselves.
std::vector<format::PageNumber> pages_that_may_differ(const PageSource& a,
                                                      const ResolvedVersion& va,
                                                      const PageSource& b,
                                                      const ResolvedVersion& vb);

}  // namespace vellum::store
