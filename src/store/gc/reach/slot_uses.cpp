#include "store/gc/reach/slot_uses.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace vellum::store {

using format::SlotRange;

namespace {
constexpr std::size_t kUnsettled = 1u << 16;
}

void SlotUses::add(std::uint32_t record, std::uint32_t slot, std::uint32_t count) {
  assert(count != 0 && count <= UINT32_MAX - slot);
  if (uses_.size() > settled_) {
    RecordSlots& last = uses_.back();
    if (last.record == record && last.slots.first + last.slots.count == slot) {
      last.slots.count += count;
      return;
    }
  }
  uses_.push_back({record, {slot, count}});
  // Many versions need the same slots. Settling limits the memory to those that differ.
  if (uses_.size() > 2 * settled_ + kUnsettled) settle();
}

void SlotUses::settle() {
  std::sort(uses_.begin(), uses_.end(), [](const RecordSlots& a, const RecordSlots& b) {
    return std::tie(a.record, a.slots.first) < std::tie(b.record, b.slots.first);
  });
  std::size_t kept = 0;
  for (const RecordSlots& use : uses_) {
    const bool same = kept != 0 && uses_[kept - 1].record == use.record;
    if (same) {
      SlotRange& last = uses_[kept - 1].slots;
      if (last.first + last.count >= use.slots.first) {
        last.count =
            std::max(last.first + last.count, use.slots.first + use.slots.count) - last.first;
        continue;
      }
    }
    uses_[kept++] = use;
  }
  assert(kept <= uses_.size());
  uses_.resize(kept);
  settled_ = kept;
}

std::vector<SlotRange> SlotUses::of(std::uint32_t record) {
  if (settled_ != uses_.size()) settle();
  const auto first = std::partition_point(uses_.begin(), uses_.end(),
                                          [&](const RecordSlots& u) { return u.record < record; });
  std::vector<SlotRange> out;
  for (auto at = first; at != uses_.end() && at->record == record; ++at) out.push_back(at->slots);
  return out;
}

std::vector<SlotRange> slots_in_either(std::span<const SlotRange> a, std::span<const SlotRange> b) {
  SlotUses both;
  for (const auto& ranges : {a, b}) {
    for (const SlotRange& r : ranges) both.add(0, r.first, r.count);
  }
  return both.of(0);
}

std::vector<SlotRange> slots_outside(const std::vector<SlotRange>& ranges, std::uint32_t items) {
  std::vector<SlotRange> out;
  std::uint32_t at = 0;
  for (const SlotRange& r : ranges) {
    assert(r.first >= at);
    if (r.first >= items) break;
    if (r.first > at) out.push_back({at, r.first - at});
    at = r.first + r.count;
  }
  if (at < items) out.push_back({at, items - at});
  return out;
}

std::uint64_t slots_in(std::span<const SlotRange> ranges) noexcept {
  std::uint64_t sum = 0;
  for (const SlotRange& r : ranges) sum += r.count;
  return sum;
}

}  // namespace vellum::store
