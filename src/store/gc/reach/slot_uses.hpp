// store/gc/reach/slot_uses.hpp: the needed slots of records, as sorted ranges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/records/translation.hpp"

namespace vellum::store {

class SlotUses {
 public:
  // `record` is a number that the caller chooses. REQUIRES: count != 0.
  void add(std::uint32_t record, std::uint32_t slot, std::uint32_t count);
  // The record's ranges, ascending and not adjacent.
  std::vector<format::SlotRange> of(std::uint32_t record);

 private:
  struct RecordSlots {
    std::uint32_t record;
    format::SlotRange slots;
  };
  void settle();

  std::vector<RecordSlots> uses_;  // the first `settled_` are sorted and not adjacent
  std::size_t settled_ = 0;
};

// The union of both. Its ranges ascend and are not adjacent.
std::vector<format::SlotRange> slots_in_either(std::span<const format::SlotRange> a,
                                               std::span<const format::SlotRange> b);
// The part of [0, items) outside `ranges`. REQUIRES: `ranges` ascend and do not overlap.
std::vector<format::SlotRange> slots_outside(const std::vector<format::SlotRange>& ranges,
                                             std::uint32_t items);
std::uint64_t slots_in(std::span<const format::SlotRange> ranges) noexcept;

}  // namespace vellum::store
