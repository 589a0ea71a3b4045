#include "store/block_size.hpp"

#include <algorithm>
#include <bit>

namespace vellum::store {
namespace {

// A grown block is not to be read for more stored bytes than this, about.
constexpr std::size_t kWantedStoredBytes = 32u << 10;

}  // namespace

BlockSize::BlockSize(const format::Encoding& encoding) noexcept
    : least_pages_(encoding.block_bytes / format::kPageBytes),
      most_pages_(encoding.grow_blocks ? format::max_block_bytes(encoding) / format::kPageBytes
                                       : least_pages_),
      pages_(least_pages_) {}

void BlockSize::note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept {
  const std::size_t ratio = raw_bytes / std::max<std::size_t>(stored_bytes, 1);
  const std::size_t pages = kWantedStoredBytes * ratio / format::kPageBytes;
  pages_ = std::clamp(std::bit_floor(pages), least_pages_, most_pages_);
}

}  // namespace vellum::store
