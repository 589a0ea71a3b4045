// remote/pieces/merged_record.hpp: the forms of one record, put together.
//
// Each store that gives slots of a record back has a form of its own: the slots that are left. A
// reference means the same content in all of them, so forms add up: what either has, both have
// together. No form takes the place of another.
#pragma once

#include <vector>

#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

struct OwnedRecord {
  PieceRecord record;
  std::vector<std::byte> bytes;  // checked
};

// Whether a form with `dropped` has all slots that one with `than` has.
bool has_slots_of(std::span<const format::SlotRange> dropped,
                  std::span<const format::SlotRange> than);

// The form with the slots of both: one of the two, if that has all of them. The same forms always
// make the same one. Errc::corrupted: what both have is not the same.
OwnedRecord merged_record(const store::StoreDirectory& store, OwnedRecord a, OwnedRecord b);

}  // namespace vellum::remote
