// store/packs/encode/block_encoder.hpp: the encoder of pages into blocks.
// It predicts the size and the codec with its filter of the next block from the last blocks.
//
// Size: a block is read whole, so it should be small. Each block also has fixed costs (a header, an
// entry in the page map, a codec without history), so it should be large. Both concern its stored
// bytes, not its pages: if 64 KiB compress to a few hundred bytes, a block gets more pages and is
// still cheap to read.
//
// Codec and filter: sampling a block of 64 KiB takes as long as compressing it. Therefore fewer
// blocks are sampled while the samples agree. If a block is much larger or smaller than the one
// before, the next block is always sampled.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>

#include "format/wire/superblock.hpp"
#include "format/wire/types.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

// Threads: one.
class BlockEncoder {
 public:
  explicit BlockEncoder(const format::Encoding& encoding) noexcept;

  // The best number of pages for the next block.
  std::size_t pages() const noexcept { return pages_; }
  EncodedPayload encode(base::Compressor& compressor, std::span<const std::byte> raw);

 private:
  base::Compressor::Choice form_of(base::Compressor& compressor, std::span<const std::byte> raw);
  void note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept;

  format::Encoding encoding_;
  std::size_t min_pages_, max_pages_, pages_;
  base::Compressor::Choice form_;  // of the last block
  std::size_t agreed_ = 0;         // consecutive samples that chose it
  std::size_t unsampled_ = 0;      // next blocks that use it without a sample
  double share_ = 0;               // stored bytes per raw byte in the last block
};

// Takes the next block off the pages (ascending, not empty). Blocks follow the aligned blocks of
// the region where enough pages of one changed; a few scattered pages share one.
inline std::span<const format::PageNumber> next_block(std::span<const format::PageNumber>& pages,
                                                      std::size_t block_pages) {
  assert(!pages.empty() && block_pages != 0);
  std::size_t n = 1;
  while (n < pages.size() && n < block_pages) {
    const bool crosses = pages[n] / block_pages != pages[n - 1] / block_pages;
    if (crosses && n >= block_pages / 2) break;
    ++n;
  }
  const auto block = pages.first(n);
  pages = pages.subspan(n);
  return block;
}

}  // namespace vellum::store
