// remote/pieces/version_records.hpp: the records that a version of a store needs, and their bytes.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// Every record that the version needs, in a form with all slots that it needs, with the copy of the
// version that stands behind its newest root; ascending by pack and offset. Reads the page map and
// the headers of records. Errc::corrupted names the place of what is missing. REQUIRES: gc keeps the
// version.
std::vector<PieceRecord> records_of_version(store::StoreDirectory& store,
                                            const format::Version& version);

// The same records but for the copy, whatever form they have: each as if it lacked all slots that the
// version does not need. Their sizes and places are not known.
std::vector<PieceRecord> slots_of_version(store::StoreDirectory& store,
                                          const format::Version& version);

// The bytes of a record, checked. Errc::corrupted names the place.
std::vector<std::byte> read_record_bytes(store::StoreDirectory& store, const PieceRecord& record);

// Whether the form has all of these slots.
bool has_slots(const PieceRecord& record, std::span<const format::SlotRange> slots);

// Where the record that a reference leads to is now, with its size and type from its header. False:
// there is none. Opens the pack.
// With these slots, if they are anywhere.
bool find_local_record(store::StoreDirectory& store, const format::RecordRef& ref, PieceRecord& out,
                       std::span<const format::SlotRange> slots = {});

}  // namespace vellum::remote
