#include "format/tiers.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kTiersKind{kTiersMagic, kMaxTiersBytes, "not a list of tiers",
                                   "larger than any list of tiers"};

bool kind_ok(std::uint8_t kind) noexcept {
  return kind == static_cast<std::uint8_t>(TierKind::archive) ||
         kind == static_cast<std::uint8_t>(TierKind::cache);
}

bool begins_with(ByteReader& in, const char* magic) noexcept {
  const auto found = in.bytes(8);
  return found.size() == 8 && std::memcmp(found.data(), magic, 8) == 0;
}

bool read_directory(ByteReader& in, TierDirectory& out) {
  const std::uint8_t kind = in.u8();
  read_uuid(in, out.id);
  out.limit_bytes = in.varint();
  out.path = in.string(kMaxTierPathBytes);
  out.kind = static_cast<TierKind>(kind);
  return in.ok() && kind_ok(kind) && tier_path_problem(out.path) == nullptr;
}

bool distinct(const std::vector<TierDirectory>& directories) {
  for (auto a = directories.begin(); a != directories.end(); ++a) {
    const bool repeated = std::any_of(directories.begin(), a, [&](const TierDirectory& b) {
      return b.id == a->id || b.path == a->path;
    });
    if (repeated) return false;
  }
  return true;
}

}  // namespace

const char* tier_path_problem(const std::string& path) noexcept {
  if (path.empty() || path.front() != '/') return "the path is not absolute";
  if (path.size() > kMaxTierPathBytes) return "the path is too long";
  if (path.size() > 1 && path.back() == '/') return "the path ends with '/'";
  if (path.find('\0') != std::string::npos) return "the path holds a NUL";
  return nullptr;
}

std::vector<std::byte> encode_tiers(const Tiers& tiers, const FileSeal& seal) {
  assert(tiers.directories.size() <= kMaxTierDirectories);
  std::vector<std::byte> body;
  ByteWriter b(body);
  b.varint(tiers.home_limit_bytes);
  b.varint(tiers.directories.size());
  for (const TierDirectory& d : tiers.directories) {
    b.u8(static_cast<std::uint8_t>(d.kind));
    b.bytes(d.id);
    b.varint(d.limit_bytes);
    b.string(d.path);
  }
  return encode_whole_file(kTiersKind, body, seal);
}

const char* decode_tiers(std::span<const std::byte> bytes, const FileSeal& seal, Tiers& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> content;
  if (const char* problem = open_whole_file(kTiersKind, bytes, seal, opened, content))
    return problem;
  ByteReader body(content);
  Tiers tiers;
  tiers.home_limit_bytes = body.varint();
  const std::uint64_t n = body.varint();
  if (!body.ok() || n > kMaxTierDirectories) return "malformed";
  tiers.directories.resize(static_cast<std::size_t>(n));
  for (TierDirectory& d : tiers.directories) {
    if (!read_directory(body, d)) return "malformed directory";
  }
  if (!body.done() || !distinct(tiers.directories)) return "malformed";
  out = std::move(tiers);
  return nullptr;
}

std::vector<std::byte> encode_tier_id(const TierId& tier, const Uuid& store_id) {
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kTierIdMagic, 8)));
  w.u32(kFormatVersion);
  w.u8(static_cast<std::uint8_t>(tier.kind));
  for (int i = 0; i < 3; ++i) w.u8(0);
  w.bytes(store_id);
  w.bytes(tier.id);
  w.u64(tier.owner.inode);
  w.u64(static_cast<std::uint64_t>(tier.owner.born_ns));
  w.string(tier.owner.home);
  append_checksum(out, checksum_seed(store_id));
  assert(out.size() >= kTierIdHeaderBytes && out.size() <= kMaxTierIdBytes);
  return out;
}

const char* decode_tier_id(std::span<const std::byte> bytes, const Uuid& store_id, TierId& out) {
  if (bytes.size() > kMaxTierIdBytes) return "larger than any tier's id";
  ByteReader in(bytes.first(bytes.size() - std::min<std::size_t>(bytes.size(), 8)));
  if (!begins_with(in, kTierIdMagic)) return "not a tier's id";
  const std::uint32_t version = in.u32();
  const std::uint8_t kind = in.u8();
  bool good = true;
  for (int i = 0; i < 3; ++i) good = in.u8() == 0 && good;
  Uuid id{};
  read_uuid(in, id);
  if (is_newer(bytes, checksum_seed(id))) return kNewerFormat;
  TierId tier;
  read_uuid(in, tier.id);
  tier.owner.inode = in.u64();
  tier.owner.born_ns = static_cast<std::int64_t>(in.u64());
  tier.owner.home = in.string(kMaxTierPathBytes);
  tier.kind = static_cast<TierKind>(kind);
  if (!in.done() || version != kFormatVersion || !good || !kind_ok(kind)) {
    return "malformed or truncated";
  }
  if (!ends_with_checksum(bytes, checksum_seed(id))) return "checksum mismatch";
  if (id != store_id) return "belongs to another store";
  out = std::move(tier);
  return nullptr;
}

}  // namespace vellum::format
