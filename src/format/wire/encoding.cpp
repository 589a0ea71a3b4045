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
  out.u8(base::codec_byte(e.compression));
  out.u8(e.compression_level);
  out.u16(flags_of(e));
  assert(out.size() - start == kEncodingBytes);
}

bool read_encoding(ByteReader& in, Encoding& out) noexcept {
  Encoding e;
  e.block_bytes = in.u32();
  const auto codec = base::codec_from_byte(in.u8());
  e.compression_level = in.u8();
  if (!set_flags(in.u16(), e) || !in.ok() || !codec || codec->filter != base::Filter::none) {
    return false;
  }
  e.compression = codec->compression;
  const bool block = std::has_single_bit(e.block_bytes) && e.block_bytes >= kMinBlockBytes &&
                     e.block_bytes <= kMaxBlockBytes;
  const int least = base::has_levels(e.compression) ? base::kMinLevel : 0;
  const bool level = e.compression_level >= least && e.compression_level <= base::kMaxLevel;
  if (!block || !level) return false;
  assert(flags_of(e) <= 31);
  out = e;
  return true;
}

}  // namespace vellum::format
