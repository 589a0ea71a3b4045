#include "format/records/record.hpp"

#include <cassert>
#include <cstring>

#include "base/bytes/checksum.hpp"
#include "base/round_up.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/number.hpp"
#include "format/wire/superblock.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr std::size_t kChecksumOffset = 48;
constexpr std::size_t kMinIndexLineBytes = 9;

std::size_t hash_bytes(const RecordHeader& h) noexcept { return h.has_hash ? kHashBytes : 0; }

std::uint64_t front_bytes(const RecordHeader& h) noexcept {
  return kRecordHeaderBytes + hash_bytes(h) + std::uint64_t{h.stored_bytes};
}

void append_padding(std::vector<std::byte>& out, std::size_t start, std::uint64_t extent_bytes) {
  assert(extent_bytes % kRecordAlignBytes == 0 && out.size() - start <= extent_bytes);
  out.resize(start + static_cast<std::size_t>(extent_bytes));
}

// `record` starts at the header; its own checksum field counts as zero.
std::uint64_t record_checksum(std::span<const std::byte> record, std::uint64_t seed) noexcept {
  assert(record.size() >= kRecordHeaderBytes);
  std::byte head[kRecordHeaderBytes];
  std::memcpy(head, record.data(), sizeof head);
  std::memset(head + kChecksumOffset, 0, 8);
  return base::checksum64(head, record.subspan(sizeof head), seed);
}

// The limits of each type: items against raw bytes. A reader can then size its tables before it
// decompresses.
bool items_ok(const RecordHeader& h) noexcept {
  const std::uint64_t items = h.items;
  const std::uint64_t raw = h.raw_bytes;
  switch (h.type) {
    case RecordType::pages:
      return items >= 1 && raw == items * kPageBytes;
    case RecordType::deltas:
      return items >= 1 && items <= kMaxDeltasPerBatch && raw >= items * 5 &&
             raw <= kMaxDeltaBatchRawBytes;
    case RecordType::map_block:
      return items >= 1 && items <= kMaxEntriesPerMapBlock && raw >= items * 3 &&
             raw <= kMaxMapBlockRawBytes;
    case RecordType::run_root:
      return items >= 1 && raw >= items * 8;
    case RecordType::version:
      return items <= 1 && raw <= kMaxVersionBytes;
    case RecordType::index:
      return raw >= items * kMinIndexLineBytes;
    case RecordType::hashes:
      return items >= 1 && items <= kMaxPageHashes && raw >= items * 5 && raw <= items * 32 + 16;
    case RecordType::translation:
      return items <= kMaxTranslatedRecords && raw <= kMaxTranslationRawBytes &&
             raw > items * kMinTranslationLineBytes;
    case RecordType::based_pages:
      return items >= 1 && raw == items * kPageBytes && h.codec == base::Compression::zstd;
  }
  return false;
}

bool same_header(const RecordHeader& a, const RecordHeader& b) noexcept {
  return a.type == b.type && a.codec == b.codec && a.pack == b.pack &&
         a.offset_bytes == b.offset_bytes && a.raw_bytes == b.raw_bytes &&
         a.stored_bytes == b.stored_bytes && a.items == b.items && a.has_hash == b.has_hash &&
         a.sealed == b.sealed && a.checksum == b.checksum;
}

// The pack's header names the format that its readers need. An unknown type is therefore damage or
// forgery.
static_assert(kFormatVersion == format_number(1, 0));  // which decode_record_header() names
bool type_known(std::uint8_t type) noexcept {
  return type >= static_cast<std::uint8_t>(RecordType::pages) &&
         type <= static_cast<std::uint8_t>(RecordType::based_pages);
}

}  // namespace

std::vector<std::byte> encode_pack_header(const PackHeader& h) {
  std::vector<std::byte> out;
  out.reserve(kPackHeaderBytes);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kPackMagic, 8)));
  w.u32(format_version(h.sealed));
  w.u32(h.translation_tag);
  w.bytes(h.store_id);
  w.u64(h.pack);
  w.u64(h.branch_id);
  w.u64(h.translation_offset_bytes);
  append_checksum(out, checksum_seed(h.store_id));
  assert(out.size() == kPackHeaderBytes);
  return out;
}

bool decode_pack_header(std::span<const std::byte> bytes, PackHeader& out) noexcept {
  if (bytes.size() < kPackHeaderBytes) return false;
  bytes = bytes.first(kPackHeaderBytes);
  ByteReader in(bytes);
  if (std::memcmp(in.bytes(8).data(), kPackMagic, 8) != 0) return false;
  const std::uint32_t version = in.u32();
  if (!number_is_known(version)) return false;
  PackHeader h;
  h.sealed = version == kSealedFormatVersion;
  h.translation_tag = in.u32();
  read_uuid(in, h.store_id);
  h.pack = in.u64();
  h.branch_id = in.u64();
  h.translation_offset_bytes = in.u64();
  const bool translated = h.translation_offset_bytes != 0;
  if (translated ? !record_offset_ok(h.translation_offset_bytes) : h.translation_tag != 0) {
    return false;
  }
  if (!ends_with_checksum(bytes, checksum_seed(h.store_id))) return false;
  out = h;
  return true;
}

std::uint64_t record_body_bytes(const RecordHeader& h) noexcept {
  return front_bytes(h) + seal_bytes(h.sealed);
}

std::uint64_t record_extent_bytes(const RecordHeader& h) noexcept {
  return base::round_up(record_body_bytes(h), kRecordAlignBytes);
}

namespace {

// The parts of a record that are encrypted, and the seal behind them.
struct SealedParts {
  base::MessageKey key;
  std::byte clear[kRecordHeaderBytes];  // the header, its checksum zero
  std::span<std::byte> text, seal;
};

SealedParts sealed_parts(std::span<std::byte> record, const RecordHeader& h) noexcept {
  SealedParts out{{base::KeyUse::pack, h.pack, 0}, {}, {}, {}};
  std::memcpy(out.clear, record.data(), kChecksumOffset);
  const auto text_bytes = static_cast<std::size_t>(front_bytes(h)) - kRecordHeaderBytes;
  out.text = record.subspan(kRecordHeaderBytes, text_bytes);
  out.seal = record.subspan(kRecordHeaderBytes + text_bytes, kSealBytes);
  return out;
}

}  // namespace

void append_record(std::vector<std::byte>& out, RecordHeader& h, std::span<const std::byte> hash,
                   std::span<const std::byte> stored, const RecordSeal& seal) {
  assert(hash.empty() || hash.size() == kHashBytes);
  assert(stored.size() <= kMaxRecordRawBytes + kMaxRecordRawBytes / 255 + 64);
  assert(record_offset_ok(h.offset_bytes));
  h.has_hash = !hash.empty();
  h.sealed = seal.keys != nullptr;
  h.stored_bytes = static_cast<std::uint32_t>(stored.size());
  const std::size_t start = out.size();
  ByteWriter w(out);
  w.u32(kRecordMagic);
  w.u8(static_cast<std::uint8_t>(h.type));
  w.u8(base::codec_byte(h.codec));
  w.u16(static_cast<std::uint16_t>((h.has_hash ? kRecordFlagHash : 0) |
                                   (h.sealed ? kRecordFlagSealed : 0)));
  w.u64(h.pack);
  w.u64(h.offset_bytes);
  w.u32(h.raw_bytes);
  w.u32(h.stored_bytes);
  w.u32(h.items);
  w.u32(0);
  w.u64(0);
  w.u64(0);
  assert(out.size() - start == kRecordHeaderBytes);
  w.bytes(hash);
  w.bytes(stored);
  if (h.sealed) {
    out.resize(out.size() + kSealBytes);
    const SealedParts parts = sealed_parts(std::span(out).subspan(start), h);
    if (seal.is_alike) {
      seal.keys->seal_alike(parts.key, parts.clear, parts.text, parts.seal);
    } else {
      seal.keys->seal(parts.key, parts.clear, parts.text, parts.seal);
    }
  }
  h.checksum = record_checksum(std::span<const std::byte>(out).subspan(start), seal.seed);
  std::memcpy(out.data() + start + kChecksumOffset, &h.checksum, sizeof h.checksum);
  append_padding(out, start, record_extent_bytes(h));
  assert(out.size() - start == record_extent_bytes(h));
}

const char* decode_record_header(std::span<const std::byte> bytes, RecordHeader& out) noexcept {
  if (bytes.size() < kRecordHeaderBytes) return "truncated record header";
  ByteReader in(bytes.first(kRecordHeaderBytes));
  if (in.u32() != kRecordMagic) return "not a record";
  RecordHeader h;
  const std::uint8_t type = in.u8();
  const auto codec = base::codec_from_byte(in.u8());
  const std::uint16_t flags = in.u16();
  if (!type_known(type)) return "a record type that format 1.0 does not have";
  if (!codec) return "a codec that format 1.0 does not have";
  if ((flags & ~unsigned{kRecordFlagHash | kRecordFlagSealed}) != 0)
    return "a record flag that format 1.0 does not have";
  h.type = static_cast<RecordType>(type);
  h.codec = *codec;
  h.has_hash = (flags & kRecordFlagHash) != 0;
  h.sealed = (flags & kRecordFlagSealed) != 0;
  h.pack = in.u64();
  h.offset_bytes = in.u64();
  h.raw_bytes = in.u32();
  h.stored_bytes = in.u32();
  h.items = in.u32();
  const std::uint32_t reserved = in.u32();
  if (reserved != 0 || in.u64() != 0) return "reserved bytes of a record are not zero";
  h.checksum = in.u64();
  if (!record_offset_ok(h.offset_bytes)) return "impossible record offset";
  if (h.raw_bytes == 0 || h.raw_bytes > kMaxRecordRawBytes) return "impossible record size";
  if (!stored_size_ok(h.codec, h.raw_bytes, h.stored_bytes)) return "impossible stored size";
  if (!items_ok(h)) return "impossible item count";
  out = h;
  return nullptr;
}

const char* verify_record(std::span<const std::byte> bytes, const RecordHeader& h,
                          const RecordRef& ref, std::uint64_t seed) noexcept {
  const std::uint64_t length = record_body_bytes(h);
  if (bytes.size() < length) return "truncated record";
  const auto record = bytes.first(static_cast<std::size_t>(length));
  // `h` may stem from an earlier read of the same offset.
  RecordHeader again;
  if (decode_record_header(record, again) != nullptr || !same_header(again, h) ||
      record_checksum(record, seed) != h.checksum) {
    return "checksum mismatch";
  }
  if (h.pack != ref.pack || h.offset_bytes != ref.offset_bytes) return "misdirected record";
  if (h.tag() != ref.tag) return "stale record";
  return nullptr;
}

const char* check_sealed(const RecordHeader& h, const RecordSeal& seal) noexcept {
  if (h.sealed == (seal.keys != nullptr)) return nullptr;
  return h.sealed ? "an encrypted record in a plain store" : "a plain record in an encrypted store";
}

const char* open_record(std::span<std::byte> bytes, const RecordHeader& h, const RecordRef& ref,
                        const RecordSeal& seal) noexcept {
  if (const char* problem = verify_record(bytes, h, ref, seal.seed)) return problem;
  if (const char* problem = check_sealed(h, seal)) return problem;
  if (!h.sealed) return nullptr;
  const SealedParts parts = sealed_parts(bytes, h);
  return seal.keys->open(parts.key, parts.clear, parts.text, parts.seal)
             ? nullptr
             : "the record was not written with the store's key (forged or exchanged)";
}

std::span<const std::byte> record_hash(std::span<const std::byte> bytes,
                                       const RecordHeader& h) noexcept {
  assert(bytes.size() >= kRecordHeaderBytes + hash_bytes(h));
  return bytes.subspan(kRecordHeaderBytes, hash_bytes(h));
}

std::span<const std::byte> record_payload(std::span<const std::byte> bytes,
                                          const RecordHeader& h) noexcept {
  if (bytes.size() < front_bytes(h)) return {};
  return bytes.subspan(kRecordHeaderBytes + hash_bytes(h), h.stored_bytes);
}

std::vector<std::byte> encode_index(std::span<const IndexLine> lines) {
  std::vector<std::byte> out;
  out.reserve(10 + lines.size() * 16);
  ByteWriter w(out);
  w.varint(lines.size());
  for (const auto& l : lines) w.u8(static_cast<std::uint8_t>(l.type));
  std::uint64_t previous = 0;
  for (const auto& l : lines) {
    assert(l.offset_bytes >= previous && l.offset_bytes % kRecordAlignBytes == 0);
    w.varint((l.offset_bytes - previous) / kRecordAlignBytes);
    previous = l.offset_bytes;
  }
  for (const auto& l : lines) w.varint(l.stored_bytes);
  for (const auto& l : lines) w.varint(l.raw_bytes);
  for (const auto& l : lines) w.varint(l.items);
  for (const auto& l : lines) w.u32(l.tag);
  assert(out.size() > lines.size() * kMinIndexLineBytes);
  return out;
}

namespace {

std::uint32_t read_u32_varint(ByteReader& in) noexcept {
  const std::uint64_t v = in.varint();
  if (v > UINT32_MAX) in.fail();
  return static_cast<std::uint32_t>(v);
}

// Offsets grow by at least the size of the previous record.
void read_offsets(ByteReader& in, std::vector<IndexLine>& lines) noexcept {
  std::uint64_t at = 0;
  for (auto& l : lines) {
    const std::uint64_t gap = in.varint();
    if (gap > kMaxPackOffsetBytes / kRecordAlignBytes) in.fail();
    at += gap * kRecordAlignBytes;
    if (!in.ok() || !record_offset_ok(at)) return in.fail();
    l.offset_bytes = at;
  }
}

bool lines_ok(const std::vector<IndexLine>& lines) noexcept {
  std::uint64_t end = kPackHeaderBytes;
  for (const auto& l : lines) {
    if (l.offset_bytes < end || l.raw_bytes > kMaxRecordRawBytes) return false;
    end = l.offset_bytes + kRecordHeaderBytes + l.stored_bytes;
  }
  return true;
}

}  // namespace

bool decode_index(std::span<const std::byte> raw, std::vector<IndexLine>& out) {
  out.clear();
  ByteReader in(raw);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > in.left() / kMinIndexLineBytes) return false;
  std::vector<IndexLine> lines(static_cast<std::size_t>(n));
  for (auto& l : lines) {
    const std::uint8_t type = in.u8();
    if (!type_known(type)) return false;
    l.type = static_cast<RecordType>(type);
  }
  read_offsets(in, lines);
  for (auto& l : lines) l.stored_bytes = read_u32_varint(in);
  for (auto& l : lines) l.raw_bytes = read_u32_varint(in);
  for (auto& l : lines) l.items = read_u32_varint(in);
  for (auto& l : lines) l.tag = in.u32();
  if (!in.done() || !lines_ok(lines)) return false;
  out = std::move(lines);
  return true;
}

std::vector<std::byte> encode_pack_trailer(std::uint64_t pack, std::uint64_t index_offset_bytes,
                                           std::uint64_t seed) {
  std::vector<std::byte> out;
  out.reserve(kPackTrailerBytes);
  ByteWriter w(out);
  w.bytes(std::as_bytes(std::span(kPackTrailerMagic, 8)));
  w.u64(pack);
  w.u64(index_offset_bytes);
  append_checksum(out, seed);
  assert(out.size() == kPackTrailerBytes);
  return out;
}

bool decode_pack_trailer(std::span<const std::byte> bytes, std::uint64_t pack, std::uint64_t seed,
                         std::uint64_t& index_offset_bytes) noexcept {
  if (bytes.size() != kPackTrailerBytes || !ends_with_checksum(bytes, seed)) return false;
  ByteReader in(bytes);
  if (std::memcmp(in.bytes(8).data(), kPackTrailerMagic, 8) != 0) return false;
  if (in.u64() != pack) return false;
  const std::uint64_t offset = in.u64();
  if (!record_offset_ok(offset)) return false;
  index_offset_bytes = offset;
  return true;
}

}  // namespace vellum::format
