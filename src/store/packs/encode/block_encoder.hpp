// store/packs/encode/block_encoder.hpp: the encoder of pages into blocks.
// It predicts the size and form of the next block from the last ones.
//
// Size: a block is read whole, so it should be small; it also repeats what every block has (a
// header, an entry in the page map, a codec that starts from nothing), so it should be large. Both
// concern its stored bytes, not its pages: where 64 KiB compress to a few hundred bytes, a block
// takes more pages and still costs next to nothing to read.
//
// Form: sampling a block of 64 KiB for the best form takes as long as compressing it. So while
// samples agree, fewer and fewer blocks are sampled. The block after one that came out much larger
// or smaller than the last is always sampled.
#pragma once

#include <cstddef>
#include <span>

#include "format/wire/superblock.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

// Threads: one.
class BlockEncoder {
 public:
  explicit BlockEncoder(const format::Encoding& encoding) noexcept;

  // How many pages the next block should take.
  std::size_t pages() const noexcept { return pages_; }
  EncodedPayload encode(base::Compressor& compressor, std::span<const std::byte> raw);

 private:
  base::Compressor::Choice form_of(base::Compressor& compressor, std::span<const std::byte> raw);
  void note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept;

  format::Encoding encoding_;
  std::size_t least_pages_, most_pages_, pages_;
  base::Compressor::Choice form_;  // of the last block
  std::size_t agreed_ = 0;         // consecutive samples that gave it
  std::size_t unsampled_ = 0;      // coming blocks that also take it
  double share_ = 0;               // stored bytes per raw byte in the last block
};

}  // namespace vellum::store
