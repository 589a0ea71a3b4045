#include "region/encode/encoding.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <string>
#include <vellum/error.hpp>

#include "base/fail.hpp"

namespace vellum::region {
void require_range(const char* what, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  assert(low <= high);
  if (value >= low && value <= high) return;
  fail(Errc::invalid_argument, "{} is {}: it must be between {} and {}", what, value, low, high);
}

format::Encoding to_format(const Encoding& given) {
  require_range("block_bytes", given.block_bytes, format::kMinBlockBytes, format::kMaxBlockBytes);
  if (!std::has_single_bit(given.block_bytes)) {
    fail(Errc::invalid_argument, "block_bytes is {}: it must be a power of two", given.block_bytes);
  }
  if (!base::codec_known(given.compression)) fail(Errc::invalid_argument, "unknown compression");
  if (base::has_levels(given.compression)) {
    require_range("compression_level",
                  static_cast<std::uint64_t>(std::max(given.compression_level, 0)), base::kMinLevel,
                  base::kMaxLevel);
  }
  format::Encoding out;
  out.block_bytes = given.block_bytes;
  out.compression = given.compression;
  out.compression_level = static_cast<std::uint8_t>(given.compression_level);
  out.grow_blocks = given.grow_blocks;
  out.filters = given.filters;
  out.dedup = given.dedup;
  out.deltas = given.deltas;
  if (given.hash != Encoding::Hash::none && given.hash != Encoding::Hash::sha256) {
    fail(Errc::invalid_argument, "unknown hash");
  }
  out.sha256 = given.hash == Encoding::Hash::sha256;
  return out;
}

std::optional<format::Encoding> to_format(const std::optional<Encoding>& given) {
  if (!given.has_value()) return std::nullopt;
  return to_format(*given);
}

Encoding from_format(const format::Encoding& stored) {
  assert(base::codec_known(stored.compression));
  Encoding out;
  out.compression = stored.compression;
  out.compression_level = stored.compression_level;
  out.block_bytes = stored.block_bytes;
  out.grow_blocks = stored.grow_blocks;
  out.filters = stored.filters;
  out.dedup = stored.dedup;
  out.deltas = stored.deltas;
  out.hash = stored.sha256 ? Encoding::Hash::sha256 : Encoding::Hash::none;
  return out;
}

}  // namespace vellum::region
