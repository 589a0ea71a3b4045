// remote/pieces/merged_record.hpp: merges the forms of one record.
//
// When gc of a store frees slots of a record, the store has its own form of the record: the
// remaining slots. A reference has the same content in all stores, so the merged form has the slots
// of both. A form never replaces another.
#pragma once

#include <vector>

#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

struct OwnedRecord {
  PieceRecord record;
  std::vector<std::byte> bytes;  // checked
};

// The record with its hash and payload decrypted. Errc::corrupted.
std::vector<std::byte> opened_record(const store::StoreDirectory& store, const OwnedRecord& owned,
                                     format::RecordHeader& header);

// Whether a form with `dropped` has all slots of a form that has dropped `than`.
bool has_slots_of(std::span<const format::SlotRange> dropped,
                  std::span<const format::SlotRange> than);

// The form with the slots of both; it is one of the two if that has all slots. Deterministic.
// Errc::corrupted: the forms differ in a slot that both have.
OwnedRecord merged_record(const store::StoreDirectory& store, OwnedRecord a, OwnedRecord b);

}  // namespace vellum::remote
