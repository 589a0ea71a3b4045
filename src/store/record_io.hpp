// store/record_io.hpp: reads one record in normal code, past the cache: run roots, versions,
// indexes, verification.
#pragma once

#include <string>
#include <vector>

#include "format/record.hpp"
#include "store/store_core.hpp"

namespace vellum::store {

struct LoadedRecord {
  format::RecordHeader header;
  std::vector<std::byte> raw;
};

// "<pack path> at byte <offset>".
std::string record_place(const StoreCore& store, std::uint64_t pack, std::uint64_t offset_bytes);

// What a record's own header says, at a place where one must be; its payload is not looked at.
format::RecordHeader read_record_header(StoreCore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes);

// Opens the pack if need be, reads the record, and checks everything but what the payload means.
// Memory is taken only after the header has proved plausible and the record lies inside its file.
// Throws Errc::damaged or io, naming the place.
LoadedRecord load_record(StoreCore& store, const format::RecordRef& ref, format::RecordType type);

}  // namespace vellum::store
