// store/packs/record_file.hpp: a fully checked read of one record from a file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/files/file.hpp"
#include "format/records/record.hpp"

namespace vellum::store {

struct LoadedRecord {
  format::RecordHeader header;
  std::vector<std::byte> raw;
  std::vector<std::byte> bytes;  // the whole record as stored in the pack, but decrypted
  std::span<const std::byte> stored() const { return format::record_payload(bytes, header); }
};

// Reads the record at a place and checks everything except the meaning of the payload; the SHA-256
// is checked if the record has one. A record of based pages is not unpacked, and its SHA-256 is not
// checked: load_pages() (store/packs/record/record_io.hpp) does both. Allocates only after the
// header is found plausible and the record is inside its file. Throws Errc::corrupted or io, naming
// the place.
LoadedRecord read_record_at(const base::File& file, const format::RecordRef& place,
                            format::RecordType type, const format::RecordSeal& seal);
// The same for a record of pages or of based pages.
LoadedRecord read_pages_at(const base::File& file, const format::RecordRef& place,
                           const format::RecordSeal& seal);

// The error text if has_its_hash() is false.
inline constexpr const char* kNotItsHash =
    "the content does not have the SHA-256 that it was stored with";
// Whether the unpacked content has the record's SHA-256; true if the record has none.
bool has_its_hash(const LoadedRecord& record);

}  // namespace vellum::store
