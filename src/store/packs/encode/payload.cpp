#include "store/packs/encode/payload.hpp"

#include <algorithm>
#include <cassert>
#include <memory>

#include "base/bytes/sha256.hpp"

namespace vellum::store {
namespace {

// The first level that finds repetitions of four bytes, of which deltas have many.
constexpr int kMinDeltasZstdLevel = 4;

}  // namespace

bool shrink(base::Compressor& compressor, base::Codec codec, std::size_t stride_words, int level,
            std::span<const std::byte> raw, EncodedPayload& out) {
  assert(raw.size() <= UINT32_MAX);
  assert(out.stored.empty());
  out.raw_bytes = static_cast<std::uint32_t>(raw.size());
  if (codec == base::Compression::none || raw.size() <= 64) return false;
  // The room is smaller than the input: the codec stops early if it cannot save enough.
  const std::size_t room = raw.size() - raw.size() / 16;
  const auto stored = std::make_unique_for_overwrite<std::byte[]>(room);
  const std::size_t size =
      compressor.compress(codec, level, raw, {stored.get(), room}, stride_words);
  out.stored.assign(stored.get(), stored.get() + size);
  if (size != 0) out.codec = codec;
  return size != 0;
}

std::vector<std::byte> payload_hash(const format::Encoding& encoding,
                                    std::span<const std::byte> raw) {
  if (!encoding.sha256) return {};
  const base::Sha256 hash = base::sha256(raw);
  return {hash.begin(), hash.end()};
}

EncodedPayload encode_payload(base::Compressor& compressor, base::Codec codec, int level,
                              std::vector<std::byte> raw) {
  EncodedPayload out;
  if (!shrink(compressor, codec, 0, level, raw, out)) out.stored = std::move(raw);
  return out;
}

EncodedPayload encode_deltas(base::Compressor& compressor, const format::Encoding& encoding,
                             std::vector<std::byte> raw) {
  auto hash = payload_hash(encoding, raw);
  const int level = std::max(int{encoding.compression_level}, kMinDeltasZstdLevel);
  auto out = encode_payload(compressor, encoding.compression, level, std::move(raw));
  out.hash = std::move(hash);
  return out;
}

}  // namespace vellum::store
