// store/stream/piece_encoder.hpp: pages on their way into a commit: compared with the branch's head,
// and what differs encoded in its cheapest form.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/wire/superblock.hpp"
#include "store/branch/checkpoint/dedup.hpp"
#include "store/packs/encode/block_encoder.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

// What became of a piece.
struct EncodedPiece {
  PageWrites writes;
  std::uint64_t pages_changed = 0;
  // Pages that did not fill half a block, and their content: they may share one with later ones.
  std::vector<format::PageNumber> loose;
  std::vector<std::byte> loose_content;

  bool empty() const noexcept { return pages_changed == 0; }
  std::size_t held_bytes() const noexcept;
};

// Threads: one.
class PieceEncoder {
 public:
  // `head`: what the branch holds.
  PieceEncoder(const format::Encoding& encoding, const PageSource& head);

  // A piece of content: `room` for its pages, and how they are read into it; null: they are there.
  struct Input {
    format::PageNumber first = 0;
    std::span<std::byte> room;
    std::function<void(format::PageNumber first, std::span<std::byte> out)> read;
  };
  // Appends to `out`. The result depends on nothing that came before. `dedup` is called when a page
  // has changed, and returns null when nothing is to be looked up.
  void encode(const Input& input, const std::function<const Dedup*()>& dedup, EncodedPiece& out);
  // The same for pages that are zero now, of which only those count that the head shows.
  void encode_zeros(format::PageNumber first, std::size_t pages, EncodedPiece& out);
  PageBlock pack(std::span<const format::PageNumber> pages, std::span<const std::byte> raw,
                 bool note);

 private:
  void compare(const Input& input, EncodedPiece& out);
  void compare_with_head(format::PageNumber first, std::span<const std::byte> now,
                         EncodedPiece& out);
  void compare_fresh(format::PageNumber page, const std::byte* now, EncodedPiece& out);
  void compare_page(format::PageNumber page, const std::byte* old, const std::byte* now,
                    EncodedPiece& out);
  void place_whole(format::PageNumber first, std::span<const std::byte> now, const Dedup* dedup,
                   EncodedPiece& out);

  const format::Encoding encoding_;
  const PageSource& head_;
  base::Compressor compressor_;
  BlockEncoder blocks_;
  std::vector<format::PageNumber> whole_;  // of the piece at hand, ascending
  std::vector<std::byte> now_, old_, gathered_;
};

}  // namespace vellum::store
