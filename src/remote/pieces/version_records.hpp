// remote/pieces/version_records.hpp: the records that a version of a store needs, and their bytes.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_core.hpp"

namespace vellum::remote {

// Every record that the version needs, with the copy of the version that stands behind its newest
// root; ascending by pack and offset. Reads the page map and the headers of records.
// Errc::corrupted names the place. REQUIRES: gc keeps the version.
std::vector<PieceRecord> records_of_version(store::StoreCore& store,
                                            const format::Version& version);

// The bytes of a record, checked. Errc::corrupted names the place.
std::vector<std::byte> read_record_bytes(store::StoreCore& store, const PieceRecord& record);

// Where the record that a reference leads to is now, with its size and type from its header. False:
// there is none. Opens the pack.
bool find_local_record(store::StoreCore& store, const format::RecordRef& ref, PieceRecord& out);

}  // namespace vellum::remote
