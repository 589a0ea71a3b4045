// store/packs/encode/payload.hpp: compression of the payloads of records.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::store {

// A record's payload, ready to append.
struct EncodedPayload {
  base::Codec codec = base::Compression::none;
  std::uint32_t raw_bytes = 0;
  std::vector<std::byte> stored;
  std::vector<std::byte> hash = {};  // SHA-256 of the raw payload; empty: none
};

inline constexpr int kMetadataZstdLevel = 3;  // map blocks, roots, versions, indexes

// The hash of a record with this raw payload: 32 bytes, or empty, as `encoding` specifies.
std::vector<std::byte> payload_hash(const format::Encoding& encoding,
                                    std::span<const std::byte> raw);

// Compresses into `out`. False: that would save less than a sixteenth; only raw_bytes of `out` is
// then valid.
bool shrink(base::Compressor& compressor, base::Codec codec, std::size_t stride_words, int level,
            std::span<const std::byte> raw, EncodedPayload& out);
// Compresses unless shrink() fails.
EncodedPayload encode_payload(base::Compressor& compressor, base::Codec codec, int level,
                              std::vector<std::byte> raw);
// Encodes a batch of deltas as `encoding` says. Blocks of pages:
// store/packs/encode/block_encoder.hpp.
EncodedPayload encode_deltas(base::Compressor& compressor, const format::Encoding& encoding,
                             std::vector<std::byte> raw);

}  // namespace vellum::store
