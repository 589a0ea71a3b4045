#include "store/packs/encode/block_encoder.hpp"
#include "store/packs/encode/payload.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace vellum::store {
namespace {

// Reading a grown block should cost at most about this many stored bytes.
constexpr std::size_t kWantedStoredBytes = 32u << 10;
constexpr std::size_t kMaxAgreed = 3;  // at most 2^3 - 1 of 8 blocks are not sampled
constexpr double kAlike = 1.0 / 4;     // relative change of the stored share

}  // namespace

BlockEncoder::BlockEncoder(const format::Encoding& encoding) noexcept
    : encoding_(encoding),
      min_pages_(encoding.block_bytes / format::kPageBytes),
      max_pages_(encoding.grow_blocks ? format::max_block_bytes(encoding) / format::kPageBytes
                                      : min_pages_),
      pages_(min_pages_),
      form_{encoding.compression, 0} {
  assert(min_pages_ != 0 && min_pages_ <= max_pages_);
}

EncodedPayload BlockEncoder::encode(base::Compressor& compressor, std::span<const std::byte> raw) {
  assert(!raw.empty() && raw.size() % format::kPageBytes == 0);
  const base::Compressor::Choice form = form_of(compressor, raw);
  EncodedPayload out;
  if (!shrink(compressor, form.codec, form.stride_words, encoding_.compression_level, raw, out)) {
    out.stored.assign(raw.begin(), raw.end());
  }
  out.hash = payload_hash(encoding_, raw);
  note(raw.size(), out.stored.size());
  return out;
}

base::Compressor::Choice BlockEncoder::form_of(base::Compressor& compressor,
                                               std::span<const std::byte> raw) {
  if (!encoding_.filters) return form_;
  if (unsampled_ > 0) {
    --unsampled_;
    return form_;
  }
  const base::Compressor::Choice sampled = compressor.choose(encoding_.compression, raw);
  agreed_ = sampled == form_ ? std::min(agreed_ + 1, kMaxAgreed) : 0;
  unsampled_ = (std::size_t{1} << agreed_) - 1;
  return form_ = sampled;
}

void BlockEncoder::note(std::size_t raw_bytes, std::size_t stored_bytes) noexcept {
  assert(raw_bytes != 0);
  const std::size_t ratio = raw_bytes / std::max<std::size_t>(stored_bytes, 1);
  const std::size_t pages = kWantedStoredBytes * ratio / format::kPageBytes;
  pages_ = std::clamp(std::bit_floor(pages), min_pages_, max_pages_);

  const double share = static_cast<double>(stored_bytes) / static_cast<double>(raw_bytes);
  if (std::abs(share - share_) > kAlike * share_) unsampled_ = 0;
  share_ = share;
}

}  // namespace vellum::store
