// store/gc/reach/slot_uses.hpp: the needed slots of records, as sorted ranges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/records/translation.hpp"

namespace vellum::store {

class SlotUses {
 public:
  // `record`: a number that the caller chooses.
  void add(std::uint32_t record, std::uint32_t slot, std::uint32_t count);
  // The record's ranges, ascending and apart from each other.
  std::vector<format::SlotRange> of(std::uint32_t record);

 private:
  struct Use {
    std::uint32_t record;
    format::SlotRange slots;
  };
  void settle();

  std::vector<Use> uses_;  // the first `settled_` are sorted and apart
  std::size_t settled_ = 0;
};

// The union of both: its ranges ascend and are apart, like those given.
std::vector<format::SlotRange> slots_in_either(std::span<const format::SlotRange> a,
                                               std::span<const format::SlotRange> b);
// The part of [0, items) outside `ranges`, which ascend and are apart.
std::vector<format::SlotRange> slots_outside(const std::vector<format::SlotRange>& ranges,
                                             std::uint32_t items);
std::uint64_t slots_in(std::span<const format::SlotRange> ranges) noexcept;

}  // namespace vellum::store
