// store/branch/checkpoint/depth_table.hpp: the number of deltas on each page's base, for a branch's writer.
//
// A checkpoint needs this number for every page that it has a delta for. Asking the page map each
// time would decode most of its blocks when the pages are scattered. Here each part of the map is
// read once, and then the checkpoints keep it up to date.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/wire/types.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

class DepthTable {
 public:
  // The depth of each page in `last_checkpointed`, 0 for a page without deltas. REQUIRES: the table
  // has seen every checkpoint since it was made or cleared.
  std::vector<std::uint8_t> lookup(const PageSource& last_checkpointed,
                                   std::span<const format::PageNumber> pages);
  // Takes in the entries that a checkpoint has written: by page, newest of a chain first.
  void update(std::span<const format::MapEntry> entries);
  // Forgets everything, as is needed when a checkpoint is given up after update().
  void clear() noexcept { chunks_.clear(); }

 private:
  static constexpr std::size_t kPagesPerChunk = 4096;
  static constexpr std::size_t kMaxChunks =
      16384;  // 64 MiB, for 256 GiB of region; then it starts anew
  using Chunk = std::array<std::uint8_t, kPagesPerChunk>;

  std::unordered_map<std::uint64_t, std::unique_ptr<Chunk>> chunks_;
};

}  // namespace vellum::store
