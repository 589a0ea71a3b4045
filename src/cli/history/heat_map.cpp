#include "cli/history/heat_map.hpp"

#include <algorithm>
#include <utility>

#include "base/round_up.hpp"
#include "format/wire/types.hpp"

namespace vellum::cli {
namespace {

using format::kPageBytes;

// Distributes a range to the columns that it touches.
void add(HeatRow& row, std::uint64_t column_bytes, const ByteRange& range) {
  row.bytes_changed += range.length_bytes;
  const std::uint64_t end = range.offset_bytes + range.length_bytes;
  for (std::uint64_t at = range.offset_bytes; at < end;) {
    const std::uint64_t column = at / column_bytes;
    const std::uint64_t next = std::min(end, (column + 1) * column_bytes);
    row.changed_in_column[column] += next - at;
    at = next;
  }
}

}  // namespace

HeatMap heat_of(const Store& store, std::vector<VersionInfo> versions, std::size_t columns,
                const ProgressFn& progress) {
  HeatMap map;
  for (const VersionInfo& v : versions)
    map.region_bytes = std::max(map.region_bytes, v.region_bytes);
  map.column_bytes = std::max(
      kPageBytes,
      base::round_up(map.region_bytes / columns + (map.region_bytes % columns != 0), kPageBytes));
  const std::size_t used = (map.region_bytes + map.column_bytes - 1) / map.column_bytes;
  map.first = versions.front();
  for (std::size_t i = 1; i < versions.size(); ++i) {
    if (progress) progress({i - 1, versions.size() - 1, "versions"});
    HeatRow row;
    row.changed_in_column.resize(used);
    store.diff(versions[i - 1].name, versions[i].name,
               [&](const ByteRange& range) { add(row, map.column_bytes, range); });
    row.version = std::move(versions[i]);
    versions[i].name = row.version.name;  // the next one is compared with it
    map.rows.push_back(std::move(row));
  }
  return map;
}

}  // namespace vellum::cli
