// cli/history/blame.hpp: the version that last changed a byte.
#pragma once

#include <cstddef>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

struct Blamed {
  ByteRange range;
  std::size_t version = 0;  // its index in the list; 0: unchanged since the oldest version
};

// Goes back from the newest version until every byte of `range` is explained. The result is
// ascending, covers `range`, and has no two neighbours of one version. With `pages`, a page belongs
// to the version that last changed a byte of it. `versions` are those of one line, oldest first.
// REQUIRES: not empty, and `range` lies within the region of the newest one.
std::vector<Blamed> blame(const Store& store, const std::vector<VersionInfo>& versions,
                          const ByteRange& range, bool pages, const ProgressFn& progress);

}  // namespace vellum::cli
