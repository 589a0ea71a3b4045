// format/encoding.hpp: how a writer stores pages, in eight bytes. A store has one, and a branch may
// have its own.
#pragma once

#include "base/codec.hpp"
#include "format/types.hpp"
#include "format/wire.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMinBlockBytes = 4u << 10;
inline constexpr std::uint32_t kMaxBlockBytes = kMaxRecordRawBytes;
inline constexpr std::size_t kEncodingBytes = 8;

// A reader needs none of it but the bound that the store's sets to blocks.
struct Encoding {
  std::uint32_t block_bytes =
      64u << 10;  // 4 KiB .. 128 MiB, power of two: pages compressed together
  base::Codec codec = base::Codec::zstd;
  std::uint8_t codec_level = 1;
  bool grow_blocks =
      true;             // where pages compress to little, blocks may grow to kMaxGrownBlockBytes
  bool filters = true;  // a block may take a filtered form of the codec
  bool dedup = true;    // a page may refer to a block that has the same content already
  bool deltas = true;   // a page may be stored as what changed in it
  bool sha256 = false;  // records of pages and deltas carry the SHA-256 of their raw payload
  bool operator==(const Encoding&) const = default;
};

inline constexpr std::uint32_t kMaxGrownBlockBytes = 1u << 20;
// Of a block of pages, raw; whether blocks grow does not matter, since a branch may decide for
// itself.
constexpr std::uint32_t max_block_bytes(const Encoding& e) noexcept {
  return e.block_bytes > kMaxGrownBlockBytes ? e.block_bytes : kMaxGrownBlockBytes;
}

void write_encoding(ByteWriter& out, const Encoding& e);
// Takes kEncodingBytes. False: some field is outside its range.
bool read_encoding(ByteReader& in, Encoding& out) noexcept;

}  // namespace vellum::format
