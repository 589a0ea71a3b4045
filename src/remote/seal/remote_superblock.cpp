#include "remote/seal/remote_superblock.hpp"

#include <algorithm>
#include <cassert>

#include "format/wire/checks.hpp"
#include "format/wire/limits.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

using format::SuperblockStatus;

// Magic, number and length, as in a store's; fingerprint; the store's superblock; a checksum.
constexpr std::size_t kStartBytes = 16, kChecksumBytes = 8;
constexpr std::size_t kSealedSuperblockBytes = kStartBytes +
                                               std::tuple_size_v<store::KeyFingerprint> +
                                               format::kSuperblockBytes + kChecksumBytes;

}  // namespace

std::vector<std::byte> encode_remote_superblock(const RemoteSuperblock& superblock) {
  if (!superblock.objects_key.has_value()) return format::encode_superblock(superblock);
  assert(!superblock.encrypted);
  std::vector<std::byte> out;
  format::ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(format::kSuperblockMagic, 8)));
  w.u32(format::kObjectsFormatVersion);
  w.u32(kSealedSuperblockBytes);
  w.bytes(*superblock.objects_key);
  w.bytes(format::encode_superblock(superblock));
  format::append_checksum(out, 0);
  assert(out.size() == kSealedSuperblockBytes);
  return out;
}

SuperblockStatus decode_remote_superblock(std::span<const std::byte> bytes,
                                          RemoteSuperblock& out) noexcept {
  out = {};
  const SuperblockStatus status = format::decode_superblock(bytes, out);
  if (status != SuperblockStatus::newer_format ||
      format::number_of(bytes) != format::kObjectsFormatVersion) {
    return status;
  }
  format::ByteReader in(bytes);
  in.bytes(kStartBytes - sizeof(std::uint32_t));
  if (in.u32() != kSealedSuperblockBytes || bytes.size() != kSealedSuperblockBytes ||
      !format::ends_with_checksum(bytes, 0)) {
    return SuperblockStatus::corrupted;
  }
  std::ranges::copy(in.bytes(std::tuple_size_v<store::KeyFingerprint>),
                    out.objects_key.emplace().begin());
  const auto inner = format::decode_superblock(in.bytes(format::kSuperblockBytes), out);
  return inner == SuperblockStatus::ok && !out.encrypted ? inner : SuperblockStatus::corrupted;
}

bool has_damaged_number(std::span<const std::byte> bytes) {
  constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);
  if (bytes.size() < kStartBytes) return false;
  for (const std::uint32_t known :
       {format::kFormatVersion, format::kSealedFormatVersion, format::kObjectsFormatVersion}) {
    std::vector<std::byte> number, tried(bytes.begin(), bytes.end());
    format::ByteWriter(number).u32(known);
    std::ranges::copy(number, tried.begin() + kStartBytes - 2 * kNumberBytes);
    RemoteSuperblock decoded;
    if (decode_remote_superblock(tried, decoded) == SuperblockStatus::ok) return true;
  }
  return false;
}

}  // namespace vellum::remote
