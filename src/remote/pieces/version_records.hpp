// remote/pieces/version_records.hpp: the records of a version, and their bytes.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// Every record that the version needs, in a form with all slots that it needs, and the copy of the
// version that follows its newest root; ascending by pack and offset. Reads the page map and the
// headers of records. Errc::corrupted names the place of a missing record. REQUIRES: gc keeps the
// version.
std::vector<PieceRecord> records_of_version(store::StoreDirectory& store,
                                            const format::Version& version);

// The same records without the copy: each as the form with exactly the slots that the version
// needs. Their sizes and places are unset.
std::vector<PieceRecord> slots_of_version(store::StoreDirectory& store,
                                          const format::Version& version);

// The bytes of a record, checked. Errc::corrupted names the place.
std::vector<std::byte> read_record_bytes(store::StoreDirectory& store, const PieceRecord& record);

// Whether the form has all of these slots.
bool has_slots(const PieceRecord& record, std::span<const format::SlotRange> slots);

// The current place of a reference's record, with the size and type of its header. Prefers a form
// with these slots. False: no such record. Opens the pack.
bool find_local_record(store::StoreDirectory& store, const format::RecordRef& ref, PieceRecord& out,
                       std::span<const format::SlotRange> slots = {});

}  // namespace vellum::remote
