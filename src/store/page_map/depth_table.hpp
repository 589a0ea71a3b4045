// store/page_map/depth_table.hpp: how many deltas lie on each page's base, as the branch's writer
// remembers it.
//
// A fold asks this of every page that it has a delta for. Asking the page map each time would
// decode most of its blocks when the pages are scattered; here each part of it is read once, and
// then kept up to date by the folds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/types.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

class DepthTable {
 public:
  // The depth of each page in `last_folded`, 0 for a page without deltas. REQUIRES: the table has
  // seen every fold since it was made or cleared.
  std::vector<std::uint8_t> lookup(const PageSource& last_folded,
                                   std::span<const format::PageNumber> pages);
  // A fold has written these: by page, newest of a chain first.
  void update(std::span<const format::MapEntry> entries);
  // Forgets everything: a fold was given up after update().
  void clear() noexcept { chunks_.clear(); }

 private:
  static constexpr std::size_t kPagesPerChunk = 4096;
  static constexpr std::size_t kMaxChunks =
      16384;  // 64 MiB, for 256 GiB of region; then it starts anew
  using Chunk = std::array<std::uint8_t, kPagesPerChunk>;

  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks_;
};

}  // namespace vellum::store
