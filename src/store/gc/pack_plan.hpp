// store/gc/pack_plan.hpp: a plan for writing a pack again, record by record and slot by slot.
#pragma once

#include <optional>
#include <vector>

#include "format/records/translation.hpp"
#include "store/gc/reach/pack_use.hpp"

namespace vellum::store {

struct PlannedRecord {
  format::RecordRef ref;    // the reference to it, which stays
  format::RecordRef place;  // where it lies now
  format::RecordType type = format::RecordType::pages;
  std::uint32_t raw_bytes = 0, stored_bytes = 0, items = 0;
  bool durable = true;                     // a version that counts needs it: it must be readable
  std::uint64_t held = 0;                  // slots that were not given back before
  std::vector<format::SlotRange> dropped;  // slots that no version needs

  bool has_slots() const noexcept {
    return type == format::RecordType::pages || type == format::RecordType::deltas;
  }
  std::uint64_t needed() const noexcept { return items - slots_in(dropped); }
};

struct PackPlan {
  std::uint64_t pack = 0;
  std::uint64_t allocated_bytes = 0;   // now
  int level = 0;                       // zstd's, with which the records will have been tried
  int encode_level = 0;                // the level in use
  bool recompress = true;              // false: only records that lose slots are encoded
  std::vector<PlannedRecord> records;  // in file order

  // The approximate size of the file if compressing makes payloads with slots `ratio` times as
  // large.
  std::uint64_t estimated_bytes(double ratio) const;
};

// nullopt: nothing in the pack is needed, it has too many records, or all of it is needed and was
// tried with that level. Throws Errc::corrupted. REQUIRES: the live set was made for slots; no
// writer will write the pack any more; the requirements of pack_extents.hpp.
std::optional<PackPlan> plan_pack(StoreDirectory& store, std::uint64_t pack, const PackNeeds& needs,
                                  LiveSet& live_set, int level);

}  // namespace vellum::store
