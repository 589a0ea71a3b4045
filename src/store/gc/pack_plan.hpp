// store/gc/pack_plan.hpp: a plan for rewriting a pack, record by record and slot by slot.
#pragma once

#include <optional>
#include <vector>

#include "format/records/translation.hpp"
#include "store/gc/reach/pack_use.hpp"

namespace vellum::store {

struct PlannedRecord {
  format::RecordRef ref;    // the reference to it, which does not change
  format::RecordRef place;  // its current offset and tag
  format::RecordType type = format::RecordType::pages;
  std::uint32_t raw_bytes = 0, stored_bytes = 0, items = 0;
  bool durable = true;                     // a valid version needs it, hence it must be readable
  std::uint64_t held = 0;                  // slots that no earlier rewrite freed
  std::vector<format::SlotRange> dropped;  // slots that no version needs, freed ones included

  bool has_slots() const noexcept {
    return type == format::RecordType::pages || type == format::RecordType::deltas;
  }
  std::uint64_t needed() const noexcept { return items - slots_in(dropped); }
};

struct PackPlan {
  std::uint64_t pack = 0;
  std::uint64_t allocated_bytes = 0;   // of the current file
  int level = 0;                       // zstd's; written to the new file's translation
  int encode_level = 0;                // zstd's, for encoding the records
  bool recompress = true;              // false: only records that lose slots are encoded
  std::size_t sealed_bytes = 0;        // of each record, for its seal
  std::vector<PlannedRecord> records;  // in file order

  // The approximate size of the new file, if compression multiplies the size of payloads with slots
  // by `ratio`.
  std::uint64_t estimated_bytes(double ratio) const;
};

// nullopt: no record of the pack is needed, it has too many records, or all of it is needed and an
// earlier rewrite used that level. Throws Errc::corrupted. REQUIRES: the live set has slots; no
// writer will write the pack any more; the requirements of pack_extents.hpp.
std::optional<PackPlan> plan_pack(StoreDirectory& store, std::uint64_t pack, const PackNeeds& needs,
                                  LiveSet& live_set, int level);

}  // namespace vellum::store
