// store/branch/checkpoint/depth_table.hpp: the number of deltas on each page's base, for a branch's writer.
//
// A checkpoint needs this number for every page for which it has a delta. Lookups in the page map
// would decode most of its blocks when the pages are scattered. The table reads each part of the map
// once, and the checkpoints then update it.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/wire/types.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// Calls body(entry, first, end) with the newest entry of pages [first, end), for all pages that
// `entries` name. The rest of a chain follows its first entry. REQUIRES: run order: by page, newest of
// a chain first.
template <typename Body>
void for_each_newest(std::span<const format::MapEntry> entries, Body body) {
  format::PageNumber end = 0;
  for (const format::MapEntry& e : entries) {
    assert(e.count >= 1 && e.page + e.count >= end);
    const format::PageNumber first = std::max(e.page, end);
    end = e.page + e.count;
    if (first < end) body(e, first, end);
  }
}

class DepthTable {
 public:
  // The depth of each page in `last_checkpointed`, 0 for a page without deltas. REQUIRES: the table
  // has seen every checkpoint since it was created or cleared.
  std::vector<std::uint8_t> lookup(const PageSource& last_checkpointed,
                                   std::span<const format::PageNumber> pages);
  // Adds the entries that a checkpoint has written. REQUIRES: by page, newest of a chain first.
  void update(std::span<const format::MapEntry> entries);
  // Drops everything. Needed when a checkpoint is given up after update().
  void clear() noexcept { chunks_.clear(); }

 private:
  static constexpr std::size_t kPagesPerChunk = 4096;
  // 64 MiB, for 256 GiB of region. A table that reaches this size is cleared.
  static constexpr std::size_t kMaxChunks = 16384;
  using Chunk = std::array<std::uint8_t, kPagesPerChunk>;

  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks_;
};

}  // namespace vellum::store
