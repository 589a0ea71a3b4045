// cli/history/heat_map.hpp: the changes of each part of a region, version by version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <vellum/store.hpp>

namespace vellum::cli {

struct HeatRow {
  VersionInfo version;
  std::uint64_t bytes_changed = 0;               // since the previous version
  std::vector<std::uint64_t> changed_in_column;  // the same, for each column
};

struct HeatMap {
  std::uint64_t region_bytes = 0;  // of the largest version
  std::uint64_t column_bytes = 0;  // a multiple of a page; the last column may have fewer
  VersionInfo first;               // the oldest row is compared with this version
  std::vector<HeatRow> rows;       // oldest first
};

// Compares each version with the one before it. `versions` are those of one line, oldest first.
// REQUIRES: not empty, and `columns` is not 0. There are at most that many columns.
HeatMap heat_of(const Store& store, std::vector<VersionInfo> versions, std::size_t columns,
                const ProgressFn& progress);

}  // namespace vellum::cli
