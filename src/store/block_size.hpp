// store/block_size.hpp: how many pages the next block takes.
//
// A block is read whole, so it should be small; and it repeats what every block has (a header, an
// entry in the page map, the codec's start from nothing), so it should be large. Both are about its
// stored bytes, not its pages: where 64 KiB compress to a few hundred bytes, a block takes more of
// them and still costs next to nothing to read.
#pragma once

#include <cstddef>

#include "format/superblock.hpp"

namespace vellum::store {

// Threads: one.
class BlockSize {
 public:
  explicit BlockSize(const format::Encoding& encoding) noexcept;

  std::size_t pages() const noexcept { return pages_; }
  // What the last block came to: the next is expected to be like it.
  void note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept;

 private:
  std::size_t least_pages_, most_pages_, pages_;
};

}  // namespace vellum::store
