// store/encode/payload.hpp: compresses the payloads of records.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/codec.hpp"
#include "format/superblock.hpp"

namespace vellum::store {

// A record's payload, ready to append.
struct EncodedPayload {
  base::Codec codec = base::Codec::none;
  std::uint32_t raw_bytes = 0;
  std::vector<std::byte> stored;
  std::vector<std::byte> hash = {};  // SHA-256 of the raw payload; empty: none
};

inline constexpr int kMetadataZstdLevel = 3;  // map blocks, roots, versions, indexes

// What a record with this raw payload carries: 32 bytes, or nothing, as `encoding` wants it.
std::vector<std::byte> payload_hash(const format::Encoding& encoding,
                                    std::span<const std::byte> raw);

// Compresses into `out`. False: that would not make it smaller by a sixteenth; what is in `out`
// then is not to be used, but for raw_bytes.
bool shrink(base::Compressor& compressor, base::Codec codec, std::size_t stride_words, int level,
            std::span<const std::byte> raw, EncodedPayload& out);
// Compresses unless that does not help.
EncodedPayload encode_payload(base::Compressor& compressor, base::Codec codec, int level,
                              std::vector<std::byte> raw);
// A batch of deltas, as `encoding` wants it. Blocks of pages: store/encode/block_encoder.hpp.
EncodedPayload encode_deltas(base::Compressor& compressor, const format::Encoding& encoding,
                             std::vector<std::byte> raw);

}  // namespace vellum::store
