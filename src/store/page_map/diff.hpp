// store/page_map/diff.hpp: the difference between two versions, at a cost that depends on its size.
#pragma once

#include <cstdint>
#include <functional>

#include "store/page_map/page_source.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::store {

struct ByteRange {
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
};

struct DiffTotals {
  std::uint64_t pages_compared = 0, pages_different = 0, bytes_different = 0, ranges = 0;
};

// Calls `visit` for every maximal range of differing bytes, ascending. A region that is shorter
// counts as zero beyond its end. Runs of the page map that both versions share are skipped unread;
// of the rest, only pages whose chains differ are rebuilt.
DiffTotals diff_versions(PackStore& store, const ResolvedVersion& a, const ResolvedVersion& b,
                         const std::function<void(const ByteRange&)>& visit);

// Pages that may differ, ascending, for callers that read the content themselves.
std::vector<format::PageNumber> pages_that_may_differ(const PageSource& a,
                                                      const ResolvedVersion& va,
                                                      const PageSource& b,
                                                      const ResolvedVersion& vb);

}  // namespace vellum::store
