#include "format/image_tail.hpp"

#include <cstring>

#include "base/bytes/checksum.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/superblock.hpp"

namespace vellum::format {
namespace {

constexpr char kImageTailMagic[] = "VLMTAIL\n";
constexpr std::size_t kMagicBytes = 8;

}  // namespace

std::array<std::byte, kImageTailBytes> encode_image_tail(const ImageTail& tail,
                                                         const Uuid& store_id) {
  const std::uint64_t fields[] = {
      tail.branch_id,   tail.sequence,  static_cast<std::uint64_t>(tail.time_ns),
      tail.begin_bytes, tail.end_bytes, tail.content_checksum,
      tail.boot};
  static_assert(kMagicBytes + sizeof fields + sizeof(std::uint64_t) == kImageTailBytes);
  std::array<std::byte, kImageTailBytes> out;
  std::memcpy(out.data(), kImageTailMagic, kMagicBytes);
  std::memcpy(out.data() + kMagicBytes, fields, sizeof fields);
  const std::uint64_t sum =
      base::checksum64(std::span(out).first(kMagicBytes + sizeof fields), checksum_seed(store_id));
  std::memcpy(out.data() + kMagicBytes + sizeof fields, &sum, sizeof sum);
  return out;
}

bool decode_image_tail(std::span<const std::byte> bytes, const Uuid& store_id,
                       ImageTail& out) noexcept {
  if (bytes.size() != kImageTailBytes ||
      std::memcmp(bytes.data(), kImageTailMagic, kMagicBytes) != 0 ||
      !ends_with_checksum(bytes, checksum_seed(store_id)))
    return false;
  std::uint64_t fields[7];
  std::memcpy(fields, bytes.data() + kMagicBytes, sizeof fields);
  const ImageTail tail{.branch_id = fields[0],
                       .sequence = fields[1],
                       .time_ns = static_cast<std::int64_t>(fields[2]),
                       .begin_bytes = fields[3],
                       .end_bytes = fields[4],
                       .content_checksum = fields[5],
                       .boot = fields[6]};
  if (tail.end_bytes > kMaxRegionBytes || tail.begin_bytes >= tail.end_bytes ||
      tail.end_bytes - tail.begin_bytes > kMaxImageTailBytes)
    return false;
  out = tail;
  return true;
}

}  // namespace vellum::format
