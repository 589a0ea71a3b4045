// format/wire/checks.hpp: range checks that several decoders share. Internal to this layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/checksum.hpp"
#include "base/bytes/codec.hpp"
#include "format/wire/types.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

inline constexpr PageNumber kMaxPages = kMaxRegionBytes / kPageBytes;
inline constexpr std::uint32_t kMaxSlotsPerPagesRecord = kMaxRecordRawBytes / kPageBytes;

// Whether a record may start here: after the pack header, aligned, far from any overflow.
inline bool record_offset_ok(std::uint64_t offset_bytes) noexcept {
  return offset_bytes >= kPackHeaderBytes && offset_bytes < kMaxPackOffsetBytes &&
         offset_bytes % kRecordAlignBytes == 0;
}

// Whether `codec` can compress `raw` bytes to `stored` bytes. The upper bound covers lz4's and
// zstd's.
inline bool stored_size_ok(base::Codec codec, std::uint64_t raw, std::uint64_t stored) noexcept {
  if (codec == base::Compression::none) return stored == raw;
  return stored >= 1 && stored <= raw + raw / 255 + 64;
}

inline bool region_size_ok(std::uint64_t region_bytes) noexcept {
  return region_bytes <= kMaxRegionBytes && region_bytes % kPageBytes == 0;
}

// A region's earlier address: aligned, and the region does not wrap around.
inline bool base_address_ok(std::uint64_t address, std::uint64_t region_bytes) noexcept {
  return address % kPageBytes == 0 && address <= UINT64_MAX - region_bytes;
}

inline bool journal_half_ok(std::uint32_t half_bytes) noexcept {
  return half_bytes >= kMinJournalHalfBytes && half_bytes <= kMaxJournalHalfBytes &&
         half_bytes % kPageBytes == 0;
}

inline void read_uuid(ByteReader& in, Uuid& out) noexcept {
  const auto b = in.bytes(out.size());
  if (b.size() == out.size()) std::memcpy(out.data(), b.data(), out.size());
}

// Ends a fixed structure with the checksum of all bytes in `out`.
inline void append_checksum(std::vector<std::byte>& out, std::uint64_t seed) {
  const std::uint64_t sum = base::checksum64(out, seed);
  ByteWriter(out).u64(sum);
}

// Whether the last 8 bytes are the checksum of all bytes before them.
inline bool ends_with_checksum(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  if (bytes.size() < 8) return false;
  const auto body = bytes.first(bytes.size() - 8);
  return ByteReader(bytes.last(8)).u64() == base::checksum64(body, seed);
}

}  // namespace vellum::format
