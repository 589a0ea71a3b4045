// store/encode/block_encoder.hpp: pages into blocks, one after the other; what the last blocks came
// to tells of the next.
//
// How many pages it takes: a block is read whole, so it should be small; and it repeats what every
// block has (a header, an entry in the page map, the codec's start from nothing), so it should be
// large. Both are about its stored bytes, not its pages: where 64 KiB compress to a few hundred
// bytes, a block takes more of them and still costs next to nothing to read.
//
// And in which form: sampling a block of 64 KiB for the best one takes as long as compressing it.
// So while samples agree, fewer and fewer blocks are sampled; but always the one after a block that
// came out much larger or smaller than the last.
#pragma once

#include <cstddef>
#include <span>

#include "format/superblock.hpp"
#include "store/encode/payload.hpp"

namespace vellum::store {

// Threads: one.
class BlockEncoder {
 public:
  explicit BlockEncoder(const format::Encoding& encoding) noexcept;

  // How many the next block should take.
  std::size_t pages() const noexcept { return pages_; }
  EncodedPayload encode(base::Compressor& compressor, std::span<const std::byte> raw);

 private:
  base::Compressor::Choice form_of(base::Compressor& compressor, std::span<const std::byte> raw);
  void note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept;

  format::Encoding encoding_;
  std::size_t least_pages_, most_pages_, pages_;
  base::Compressor::Choice form_;  // of the last block
  std::size_t agreed_ = 0;         // samples one after the other that gave it
  std::size_t unsampled_ = 0;      // blocks to come that take it, too
  double share_ = 0;               // stored bytes of a raw byte, in the last block
};

}  // namespace vellum::store
