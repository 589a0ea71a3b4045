// format/wire/encoding.hpp: the encoding of pages, in eight bytes. A store has one encoding, and a
// branch may have its own.
#pragma once

#include "base/bytes/codec.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

inline constexpr std::uint32_t kMinBlockBytes = 4u << 10;
inline constexpr std::uint32_t kMaxBlockBytes = kMaxRecordRawBytes;
inline constexpr std::size_t kEncodingBytes = 8;

// Readers need only max_block_bytes() of the store's encoding.
struct Encoding {
  // Of the pages that are compressed together; 4 KiB to 128 MiB, a power of two.
  std::uint32_t block_bytes = 64u << 10;
  base::Compression compression = base::Compression::zstd;
  std::uint8_t compression_level = 1;
  bool grow_blocks = true;  // blocks of well compressible pages may grow to kMaxGrownBlockBytes
  bool filters = true;      // a block may have a filter before its compression
  bool dedup = true;        // a page may refer to an existing block with the same content
  bool deltas = true;       // a page may be stored as a delta
  bool sha256 = false;      // records of pages and deltas carry the SHA-256 of their raw payload
  bool operator==(const Encoding&) const = default;
};

inline constexpr std::uint32_t kMaxGrownBlockBytes = 1u << 20;
// The raw size limit of a block of pages. It does not depend on `grow_blocks`, since each branch
// has its own value of that.
constexpr std::uint32_t max_block_bytes(const Encoding& e) noexcept {
  return e.block_bytes > kMaxGrownBlockBytes ? e.block_bytes : kMaxGrownBlockBytes;
}

void write_encoding(ByteWriter& out, const Encoding& e);
// Reads kEncodingBytes. Returns false if a field is outside its range.
bool read_encoding(ByteReader& in, Encoding& out) noexcept;

}  // namespace vellum::format
