// store/stream/piece_encoder.hpp: compares pages with the branch's head and encodes the
// differences.
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

// The encoded pages of a range.
struct EncodedPiece {
  PageWrites writes;
  std::uint64_t pages_changed = 0;
  // Pages that do not fill half a block, and their content. They may share a block with later
  // pages.
  std::vector<format::PageNumber> loose;
  std::vector<std::byte> loose_content;

  bool empty() const noexcept { return pages_changed == 0; }
  std::size_t held_bytes() const noexcept;
};

// Threads: one.
class PieceEncoder {
 public:
  // `head`: the content of the branch.
  PieceEncoder(const format::Encoding& encoding, const PageSource& head);

  // A range of content: `room` for its pages, and a function that reads them. Null: they are read.
  struct Input {
    format::PageNumber first = 0;
    std::span<std::byte> room;
    std::function<void(format::PageNumber first, std::span<std::byte> out)> read;
  };
  // Appends to `out`. The result does not depend on earlier calls. Calls `dedup` if a page has
  // changed; null: do not look up pages.
  void encode(const Input& input, const std::function<const Dedup*()>& dedup, EncodedPiece& out);
  // The same for pages that are zero now. Only those that the head shows count.
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
  std::vector<format::PageNumber> whole_;  // of the current range, ascending
  std::vector<std::byte> now_, old_, gathered_;
};

}  // namespace vellum::store
