// store/branch/checkpoint/page_difference.hpp: the pages in which two versions differ, as writes.
#pragma once

#include <span>
#include <vector>

#include "format/wire/superblock.hpp"
#include "store/packs/encode/block_encoder.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/page_writes.hpp"

namespace vellum::store {

// Gives each page that differs its cheapest form: zero, a delta, or part of a block.
class PageDifference {
 public:
  // Blocks have `block_pages` pages. Both references outlive this.
  PageDifference(const format::Encoding& encoding, base::Compressor& compressor,
                 std::size_t block_pages);
  // The page is `before`, or zero if that is null, and is to be `now`. REQUIRES: the pages ascend.
  void add(format::PageNumber page, const std::byte* before, const std::byte* now);
  // Those that are complete.
  std::vector<PageBlock>& blocks() noexcept { return out_.blocks; }
  // What was added since the last call.
  PageWrites take();

 private:
  void pack();

  base::Compressor& compressor_;
  BlockEncoder encoder_;
  const std::size_t block_pages_;
  PageWrites out_;
  std::vector<format::PageNumber> pages_;  // of the next block
  std::vector<std::byte> raw_;             // of `pages_`
};

// The pages of a piece at most.
inline constexpr std::size_t kPagesOfAPiece = 512;

// The writes that make the content of `pages` in `before` that in `source`; a null `before` stands
// for zero pages. Throws the errors of PageSource::read(). REQUIRES: `pages` ascend.
std::vector<PageWrites> page_writes(const format::Encoding& encoding, const PageSource& source,
                                    const PageSource* before,
                                    std::span<const format::PageNumber> pages);
// The number of pages that they write.
std::uint64_t pages_in(const std::vector<PageWrites>& pieces);

}  // namespace vellum::store
