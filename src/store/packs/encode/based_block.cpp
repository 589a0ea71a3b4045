#include "store/packs/encode/based_block.hpp"

#include <cassert>

namespace vellum::store {

namespace {
constexpr int kZstdLevel = 3;
}  // namespace

bool BasedBlock::try_bases(const BlockView& block, const SimilarPages& known,
                           base::Compressor& compressor, std::size_t max_block_bytes) {
  assert(block.raw.empty() || block.raw.size() == block.raw_bytes);
  payload_.clear();
  raw_ = block.raw;
  if (raw_.empty()) {
    if (!decompressor_.has_value()) decompressor_.emplace(max_block_bytes);
    unpacked_.resize(block.raw_bytes);
    if (!decompressor_->decompress(block.codec, block.stored, unpacked_)) return false;
    raw_ = unpacked_;
  }
  sketch_ = SimilarPages::Sketch(raw_);
  if (!known.find(sketch_, on_)) return true;
  encode(compressor, block.stored.size() * (100 - kSavedPercent) / 100);
  return true;
}

void BasedBlock::encode(base::Compressor& compressor, std::size_t max_bytes) {
  payload_ = format::encode_base_pages(on_.pages);
  const std::size_t list_bytes = payload_.size();
  assert(!on_.pages.empty() && on_.pages.size() <= format::kMaxBasePages);
  std::size_t size = 0;
  if (list_bytes < max_bytes) {
    payload_.resize(max_bytes);
    size = compressor.compress_on(on_.prefix, kZstdLevel, raw_,
                                  std::span(payload_).subspan(list_bytes));
  }
  payload_.resize(size == 0 ? 0 : list_bytes + size);
}

}  // namespace vellum::store
