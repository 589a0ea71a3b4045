// store/record_io.hpp: reads one record in normal code, past the cache: run roots, versions,
// indexes, verification.
//
// A reference says where a record was when it was written; its place is where it is now, and
// differs in a pack that was written again (PackSet::locate).
#pragma once

#include <string>
#include <vector>

#include "format/record.hpp"
#include "store/store_core.hpp"

namespace vellum::store {

struct LoadedRecord {
  format::RecordHeader header;
  std::vector<std::byte> raw;
  std::vector<std::byte> bytes;  // all of it as it stands in the pack
  std::span<const std::byte> stored() const { return format::record_payload(bytes, header); }
};

// "<pack path> at byte <offset>", of a place.
std::string record_place(StoreCore& store, std::uint64_t pack, std::uint64_t offset_bytes);
// The same of where a reference leads, as far as that can be told.
std::string record_place(StoreCore& store, const format::RecordRef& ref);

// What a record's own header says, at a place where one must be; its payload is not looked at.
format::RecordHeader read_record_header(StoreCore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes);

// Reads the record at a place and checks everything but what the payload means, its SHA-256
// included if it has one. Memory is taken only after the header has proved plausible and the record
// lies inside its file. Throws Errc::damaged or io, naming the place.
LoadedRecord read_record_at(const base::File& file, const format::RecordRef& place,
                            format::RecordType type, std::uint64_t seed);
// The same; opens the pack if need be.
LoadedRecord load_record_at(StoreCore& store, const format::RecordRef& place,
                            format::RecordType type);

// The record that a reference leads to.
LoadedRecord load_record(StoreCore& store, const format::RecordRef& ref, format::RecordType type);
// The same, from a cache where one has it. For opening versions: verify and dedup want to know what
// is in the pack itself.
LoadedRecord load_cached_record(StoreCore& store, const format::RecordRef& ref,
                                format::RecordType type);

}  // namespace vellum::store
