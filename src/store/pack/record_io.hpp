// store/pack/record_io.hpp: reads one record in normal code, past the cache: run roots, versions,
// indexes, verification.
//
// A reference says where a record was when it was written; its place is where it is now, and
// differs in a pack that was written again (PackSet::locate).
#pragma once

#include <string>
#include <vector>

#include "format/record.hpp"
#include "store/pack/pack_store.hpp"
#include "store/pack/record_file.hpp"

namespace vellum::store {

// "<pack path> at byte <offset>", of a place.
std::string record_place(PackStore& store, std::uint64_t pack, std::uint64_t offset_bytes);
// The same of where a reference leads, as far as that can be told.
std::string record_place(PackStore& store, const format::RecordRef& ref);

// What a record's own header says, at a place where one must be; its payload is not looked at.
format::RecordHeader read_record_header(PackStore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes);

// read_record_at() in a pack, which is opened if need be.
LoadedRecord load_record_at(PackStore& store, const format::RecordRef& place,
                            format::RecordType type);

// The record that a reference leads to.
LoadedRecord load_record(PackStore& store, const format::RecordRef& ref, format::RecordType type);
// The same, from a cache where one has it. For opening versions: verify and dedup want to know what
// is in the pack itself.
LoadedRecord load_cached_record(PackStore& store, const format::RecordRef& ref,
                                format::RecordType type);

}  // namespace vellum::store
