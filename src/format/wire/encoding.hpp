// format/wire/encoding.hpp: how a writer stores pages, in eight bytes. A store has one encoding, and a
// branch may have its own.
#pragma once

#include "base/bytes/codec.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMinBlockBytes = 4u << 10;
inline constexpr std::uint32_t kMaxBlockBytes = kMaxRecordRawBytes;
inline constexpr std::size_t kEncodingBytes = 8;

// A reader needs only the bound that the store's encoding sets to blocks.
struct Encoding {
  std::uint32_t block_bytes =
      64u << 10;  // 4 KiB .. 128 MiB, power of two: pages compressed together
  base::Codec codec = base::Codec::zstd;
  std::uint8_t codec_level = 1;
  bool grow_blocks =
      true;             // where pages compress to few bytes, blocks may grow to kMaxGrownBlockBytes
  bool filters = true;  // a block may take a filtered form of the codec
  bool dedup = true;    // a page may refer to an existing block of the same content
  bool deltas = true;   // a page may be stored as its changes
  bool sha256 = false;  // records of pages and deltas carry the SHA-256 of their raw payload
  bool operator==(const Encoding&) const = default;
};

inline constexpr std::uint32_t kMaxGrownBlockBytes = 1u << 20;
// The raw size limit of a block of pages. `grow_blocks` does not matter here, since a branch may
// decide it for itself.
constexpr std::uint32_t max_block_bytes(const Encoding& e) noexcept {
  return e.block_bytes > kMaxGrownBlockBytes ? e.block_bytes : kMaxGrownBlockBytes;
}

void write_encoding(ByteWriter& out, const Encoding& e);
// Reads kEncodingBytes. False: a field is outside its range.
bool read_encoding(ByteReader& in, Encoding& out) noexcept;

}  // namespace vellum::format
