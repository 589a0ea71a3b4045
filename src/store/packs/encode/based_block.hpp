// store/packs/encode/based_block.hpp: a block of pages, encoded as a difference to base pages.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "store/packs/encode/payload.hpp"
#include "store/packs/encode/similar_pages.hpp"

namespace vellum::store {

// A compressed block of pages in the caller's memory.
struct BlockView {
  base::Codec codec = base::Compression::none;
  std::uint32_t raw_bytes = 0;
  std::span<const std::byte> stored;
  std::span<const std::byte> hash;      // as in EncodedPayload
  std::span<const std::byte> raw = {};  // its content; empty: not in memory

  std::uint32_t pages() const noexcept { return raw_bytes / std::uint32_t{format::kPageBytes}; }
};

// Serves one block after another, and reuses its memory.
class BasedBlock {
 public:
  // A block gets base pages if they save this share of it. Otherwise it is better stored without:
  // later blocks can then use its pages as base pages (docs/decisions/encoding.md).
  static constexpr std::size_t kSavedPercent = 30;

  // Searches `known` for base pages, and compresses the block with them as prefix. False: the block
  // is damaged. Threads: several may use the same `known` at once. REQUIRES: the block stays valid
  // until the next call, and has at most `max_block_bytes`, which is the same in each call.
  bool try_bases(const BlockView& block, const SimilarPages& known, base::Compressor& compressor,
                 std::size_t max_block_bytes);

  std::span<const std::byte> raw() const noexcept { return raw_; }
  const SimilarPages::Sketch& sketch() const noexcept { return sketch_; }
  // The payload of a record of based pages, the pack of the base pages, and these. Empty: they
  // would save too little.
  std::span<const std::byte> payload() const noexcept { return payload_; }
  std::uint64_t pack() const noexcept { return on_.pack; }
  std::span<const format::BasePage> pages() const noexcept { return on_.pages; }

 private:
  void encode(base::Compressor& compressor, std::size_t max_bytes);

  std::vector<std::byte> unpacked_;
  std::span<const std::byte> raw_;
  SimilarPages::Sketch sketch_;
  SimilarPages::Bases on_;
  std::vector<std::byte> payload_;
  std::optional<base::Decompressor> decompressor_;  // created when needed
};

}  // namespace vellum::store
