#include "format/wire/encoding.hpp"

#include <bit>
#include <cassert>

#include "format/wire/magic.hpp"

namespace vellum::format {
namespace {

std::uint16_t flags_of(const Encoding& e) noexcept {
  unsigned flags = 0;
  if (!e.grow_blocks) flags |= kSuperblockFlagFixedBlocks;
  if (!e.filters) flags |= kSuperblockFlagNoFilters;
  if (!e.dedup) flags |= kSuperblockFlagNoDedup;
  if (!e.deltas) flags |= kSuperblockFlagNoDeltas;
  if (e.sha256) flags |= kSuperblockFlagSha256;
  return static_cast<std::uint16_t>(flags);
}

bool set_flags(std::uint16_t flags, Encoding& e) noexcept {
  e.grow_blocks = (flags & kSuperblockFlagFixedBlocks) == 0;
  e.filters = (flags & kSuperblockFlagNoFilters) == 0;
  e.dedup = (flags & kSuperblockFlagNoDedup) == 0;
  e.deltas = (flags & kSuperblockFlagNoDeltas) == 0;
  e.sha256 = (flags & kSuperblockFlagSha256) != 0;
  return flags == flags_of(e);
}

}  // namespace

void write_encoding(ByteWriter& out, const Encoding& e) {
  [[maybe_unused]] const std::size_t start = out.size();
  out.u32(e.block_bytes);
  out.u8(static_cast<std::uint8_t>(e.codec));
  out.u8(e.codec_level);
  out.u16(flags_of(e));
  assert(out.size() - start == kEncodingBytes);
}

bool read_encoding(ByteReader& in, Encoding& out) noexcept {
  Encoding e;
  e.block_bytes = in.u32();
  const std::uint8_t codec = in.u8();
  e.codec = static_cast<base::Codec>(codec);
  e.codec_level = in.u8();
  if (!set_flags(in.u16(), e) || !in.ok() || !base::codec_known(codec)) return false;
  const bool block = std::has_single_bit(e.block_bytes) && e.block_bytes >= kMinBlockBytes &&
                     e.block_bytes <= kMaxBlockBytes;
  const bool level = e.codec_level <= 19 && (e.codec != base::Codec::zstd || e.codec_level >= 1);
  if (!block || !level || !base::codec_plain(e.codec)) return false;
  assert(flags_of(e) <= 31);
  out = e;
  return true;
}

}  // namespace vellum::format
