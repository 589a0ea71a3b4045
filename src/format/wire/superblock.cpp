#include "format/wire/superblock.hpp"

#include <cassert>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

bool fields_ok(const Superblock& sb) noexcept {
  const bool pack = sb.pack_bytes >= kMinPackBytes && sb.pack_bytes <= kMaxPackBytes;
  return pack && journal_half_ok(sb.journal_half_bytes);
}

// Removes one code point of strict UTF-8 from the front of `s` and returns it. Returns -1 for
// anything else, overlong forms and surrogates included. REQUIRES: `s` is not empty.
long take_code_point(std::string_view& s) noexcept {
  assert(!s.empty());
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = at(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                                            : 4;
  if (length == 0 || first > 0xf4 || s.size() < length) return -1;
  if (length == 1) {
    s.remove_prefix(1);
    return static_cast<long>(first);
  }
  unsigned long c = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return -1;
    c = c << 6 | (at(i) & 0x3fU);
  }
  constexpr unsigned long kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return -1;
  s.remove_prefix(length);
  return static_cast<long>(c);
}

bool plain_ascii(long c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '-';
}

// Controls, spaces, and characters that are invisible or reverse the text around them. Two names
// must not look alike because of them.
bool invisible(long c) noexcept {
  assert(c >= 0 && c <= 0x10ffff);
  return (c >= 0x80 && c <= 0xa0) || c == 0xad || c == 0x1680 || c == 0x180e ||
         (c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f) ||
         (c >= 0x205f && c <= 0x206f) || c == 0x3000 || c == 0xfeff ||
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

}  // namespace

std::vector<std::byte> encode_superblock(const Superblock& sb) {
  std::vector<std::byte> out;
  out.reserve(kSuperblockBytes);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kSuperblockMagic, 8)));
  w.u32(format_version(sb.encrypted));
  w.u32(kSuperblockBytes);
  w.bytes(sb.store_id);
  w.u64(static_cast<std::uint64_t>(sb.created_ns));
  write_encoding(w, sb);
  w.u64(sb.pack_bytes);
  w.u32(sb.journal_half_bytes);
  w.u32(0);
  append_checksum(out, 0);
  assert(out.size() == kSuperblockBytes);
  return out;
}

SuperblockStatus decode_superblock(std::span<const std::byte> bytes, Superblock& out) noexcept {
  ByteReader in(bytes);
  const auto magic = in.bytes(8);
  if (magic.size() != 8 || std::memcmp(magic.data(), kSuperblockMagic, 8) != 0) {
    return SuperblockStatus::not_a_store;
  }
  const std::uint32_t version = in.u32();
  // Checked before the checksum: newer formats keep only the magic and this number in place.
  if (in.ok() && number_is_newer(version)) return SuperblockStatus::newer_format;
  const std::uint32_t length = in.u32();
  if (!in.ok() || !number_is_known(version) || length != kSuperblockBytes ||
      bytes.size() != kSuperblockBytes || !ends_with_checksum(bytes, 0)) {
    return SuperblockStatus::corrupted;
  }
  Superblock sb;
  read_uuid(in, sb.store_id);
  sb.created_ns = static_cast<std::int64_t>(in.u64());
  sb.encrypted = version == kSealedFormatVersion;
  const bool encoding_ok = read_encoding(in, sb);
  sb.pack_bytes = in.u64();
  sb.journal_half_bytes = in.u32();
  if (!encoding_ok || in.u32() != 0 || !fields_ok(sb)) return SuperblockStatus::corrupted;
  out = sb;
  return SuperblockStatus::ok;
}

std::uint64_t checksum_seed(const Uuid& store_id) noexcept { return base::checksum64(store_id); }

RecordSeal StoreSeal::of_records() const noexcept { return {checksum_seed(store_id), keys.get()}; }

const char* name_problem(std::string_view name) noexcept {
  if (name.empty()) return "name is empty";
  if (name.size() > kMaxNameBytes) return "name is longer than 200 bytes";
  if (name.front() == '.') return "name starts with '.'";
  if (name.front() == '-') return "name starts with '-'";
  while (!name.empty()) {
    const long c = take_code_point(name);
    if (c < 0) return "name is not valid UTF-8";
    if (c < 0x80 && !plain_ascii(c)) {
      if (c == '/') return "name contains '/'";
      return "name contains a character other than letters, digits and . _ + -";
    }
    if (invisible(c)) return "name contains a control, space or invisible character";
  }
  return nullptr;
}

}  // namespace vellum::format
