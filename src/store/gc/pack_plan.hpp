// store/gc/pack_plan.hpp: what a pack would hold when it is written again, record by record and
// slot by slot.
#pragma once

#include <optional>
#include <vector>

#include "format/translation.hpp"
#include "store/reach/pack_use.hpp"

namespace vellum::store {

struct PlannedRecord {
  format::RecordRef ref;    // what refers to it, and stays
  format::RecordRef place;  // where it lies now
  format::RecordType type = format::RecordType::pages;
  std::uint32_t raw_bytes = 0, stored_bytes = 0, items = 0;
  bool firm = true;                        // a version that counts needs it: it must read
  std::uint64_t held = 0;                  // of its slots, that were not given back before
  std::vector<format::SlotRange> dropped;  // of its slots, that no version needs

  bool has_slots() const noexcept {
    return type == format::RecordType::pages || type == format::RecordType::deltas;
  }
  std::uint64_t needed() const noexcept { return items - slots_in(dropped); }
};

struct PackPlan {
  std::uint64_t pack = 0;
  std::uint64_t allocated_bytes = 0;  // now
  int level = 0;                      // of zstd, that the records will have been tried with
  int encode_level = 0;               // that is used
  bool recompress = true;  // false: only records of which something is dropped are encoded
  std::vector<PlannedRecord> records;  // in the order of the file

  // About how large the file will be, when compressing makes payloads that have slots `ratio` times
  // as large as they are.
  std::uint64_t estimated_bytes(double ratio) const;
};

// nullopt: nothing of it is needed, it has too many records, or it holds nothing but what is needed
// and was tried with that level. Throws Errc::damaged. REQUIRES: the census was made for slots; no
// writer will write the pack any more; as of pack_extents.hpp.
std::optional<PackPlan> plan_pack(StoreCore& store, std::uint64_t pack, const PackNeeds& needs,
                                  Census& census, int level);

}  // namespace vellum::store
