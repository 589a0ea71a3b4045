// format/records/record.hpp: packs and the records in them.
//
// A pack is a header, then records back to back, each aligned to 8 bytes. A sealed pack ends with
// an index record and a trailer. A record's header names its type, pack and offset. One checksum
// covers header and payload. A reader thus detects damage, truncation, and a valid record at a
// wrong offset.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/wire/seal.hpp"
#include "format/wire/types.hpp"

namespace vellum::format {

struct PackHeader {
  Uuid store_id{};
  std::uint64_t pack = 0;
  std::uint64_t branch_id = 0;  // its writer
  // The translation record of a rewritten pack (format/records/translation.hpp). 0: records are at
  // the offsets that references give.
  std::uint64_t translation_offset_bytes = 0;
  std::uint32_t translation_tag = 0;
  bool sealed = false;  // its records are (format 1.1)
};
std::vector<std::byte> encode_pack_header(const PackHeader& h);
bool decode_pack_header(std::span<const std::byte> bytes, PackHeader& out) noexcept;
// Nullptr, or how a pack of the other kind of store is wrong.
constexpr const char* check_sealed(const PackHeader& h, bool store_is_encrypted) noexcept {
  if (h.sealed == store_is_encrypted) return nullptr;
  return h.sealed ? "an encrypted pack in a plain store" : "a plain pack in an encrypted store";
}

// The numbers are stored on disk: never reuse one.
enum class RecordType : std::uint8_t {
  pages = 1,        // items pages of kPageBytes each
  deltas = 2,       // items page deltas (format/records/delta.hpp)
  map_block = 3,    // items map entries (format/records/page_map.hpp)
  run_root = 4,     // items map blocks (format/records/page_map.hpp)
  version = 5,      // an encoded Version, kept for repair
  index = 6,        // items records: the content of a sealed pack
  hashes = 7,       // items hashes of pages (format/records/page_hashes.hpp)
  translation = 8,  // items lines: new offsets of records (format/records/translation.hpp)
  based_pages = 9,  // items pages, compressed with base pages (format/records/based_pages.hpp)
};

// Whether a map entry of kind `base` may refer to a record of this type.
constexpr bool holds_pages(RecordType type) noexcept {
  return type == RecordType::pages || type == RecordType::based_pages;
}

struct RecordHeader {
  RecordType type = RecordType::pages;
  base::Codec codec = base::Compression::none;
  std::uint64_t pack = 0;
  std::uint64_t offset_bytes = 0;  // of this header in the pack
  std::uint32_t raw_bytes = 0;     // payload, decompressed
  std::uint32_t stored_bytes = 0;  // payload, as stored (without padding)
  std::uint32_t items = 0;
  bool has_hash = false;       // a SHA-256 of the raw payload is between header and payload
  bool sealed = false;         // hash and payload are encrypted; their seal follows the payload
  std::uint64_t checksum = 0;  // of header (checksum field zero), hash, stored payload and seal
  std::uint32_t tag() const noexcept { return static_cast<std::uint32_t>(checksum); }
};

// The bytes of a record: header, hash, payload, seal.
std::uint64_t record_body_bytes(const RecordHeader& h) noexcept;
// The size of a record on disk: these bytes and padding.
std::uint64_t record_extent_bytes(const RecordHeader& h) noexcept;

// Appends header (checksum computed with the seed and set in `h`), optional hash (32 bytes or empty),
// payload, seal and padding to `out`. REQUIRES: h.offset_bytes is the offset in the pack that the end of
// `out` will have, and is aligned.
void append_record(std::vector<std::byte>& out, RecordHeader& h, std::span<const std::byte> hash,
                   std::span<const std::byte> stored, const RecordSeal& seal);

// Parses and range-checks a header (known type and codec, raw_bytes <= kMaxRecordRawBytes,
// stored_bytes at most the codec's bound, items plausible for the type). Does not verify the
// checksum. Returns nullptr, or a description of the error. Does not allocate: the fault handler
// uses this and verify_record().
const char* decode_record_header(std::span<const std::byte> bytes, RecordHeader& out) noexcept;

// Checks the checksum over the whole record (`bytes` starts at the header and holds at least hash,
// payload and seal) and that `ref` names this record. Returns nullptr, or a description of the error
// ("checksum mismatch", "stale record", "misdirected record", ...).
const char* verify_record(std::span<const std::byte> bytes, const RecordHeader& h,
                          const RecordRef& ref, std::uint64_t seed) noexcept;
// Nullptr, or how an encrypted record in a plain store is wrong, and a plain one in an encrypted
// store. A reader that has room for a seal only in an encrypted store asks before it reads.
const char* check_sealed(const RecordHeader& h, const RecordSeal& seal) noexcept;
// As verify_record(), and decrypts hash and payload in place. The fault handler uses this, too.
const char* open_record(std::span<std::byte> bytes, const RecordHeader& h, const RecordRef& ref,
                        const RecordSeal& seal) noexcept;
// The SHA-256 of the raw payload inside these bytes; empty when the record has none. REQUIRES:
// `bytes` hold header and hash.
std::span<const std::byte> record_hash(std::span<const std::byte> bytes,
                                       const RecordHeader& h) noexcept;
// The stored payload inside these bytes; empty when they are too few.
std::span<const std::byte> record_payload(std::span<const std::byte> bytes,
                                          const RecordHeader& h) noexcept;

// Index record of a sealed pack, and the trailer that holds its offset.
struct IndexLine {
  RecordType type = RecordType::pages;
  std::uint64_t offset_bytes = 0;
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  std::uint32_t items = 0;
  std::uint32_t tag = 0;
  bool operator==(const IndexLine&) const = default;
};
std::vector<std::byte> encode_index(std::span<const IndexLine> lines);
bool decode_index(std::span<const std::byte> raw, std::vector<IndexLine>& out);

std::vector<std::byte> encode_pack_trailer(std::uint64_t pack, std::uint64_t index_offset_bytes,
                                           std::uint64_t seed);
bool decode_pack_trailer(std::span<const std::byte> bytes, std::uint64_t pack, std::uint64_t seed,
                         std::uint64_t& index_offset_bytes) noexcept;

}  // namespace vellum::format
