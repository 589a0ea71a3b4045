#include "store/gc/pack_plan.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::RecordRef;
using format::SlotRange;
using format::Translation;

namespace {

// Approximate sizes: tags and offsets of a record in the translation and index, and a slot range.
constexpr std::uint64_t kTranslationLineBytes = 12, kIndexLineBytes = 9, kSlotRangeBytes = 2;

class Planner {
 public:
  Planner(StoreDirectory& store, std::uint64_t pack, const PackNeeds& needs, LiveSet& live_set)
      : store_(store), needs_(needs), live_set_(live_set) {
    plan_.pack = pack;
    plan_.sealed_bytes = format::seal_bytes(store.is_encrypted());
  }

  std::optional<PackPlan> run(int level) {
    const std::size_t count = needs_.records.size() + needs_.copies.size();
    if (count == 0 || count > format::kMaxTranslatedRecords) return std::nullopt;
    store_.packs().open(plan_.pack);
    translation_ = store_.packs().translation(plan_.pack);
    plan_.allocated_bytes = store_.packs().places().open(plan_.pack)->allocated_bytes();
    const int before = translation_ == nullptr ? 0 : translation_->level;
    plan_.level = plan_.encode_level = std::max(level, before);
    plan_.recompress = level > before;
    place_records();
    describe_records();
    if (!plan_.recompress && !drops_) return std::nullopt;
    return std::move(plan_);
  }

 private:
  void place_records() {
    for (const auto& r : needs_.records) {
      const RecordRef& ref = live_set_.record(r.id);
      const RecordPlace place = store_.packs().locate(ref);
      if (place.problem != nullptr) {
        fail(Errc::corrupted, "{}: {}", record_place(store_, ref), place.problem);
      }
      add(ref, place.record, r.id);
    }
    for (const Extent& copy : needs_.copies) {
      const RecordRef place = {plan_.pack, copy.from,
                               read_record_header(store_, plan_.pack, copy.from).tag()};
      add(reference_to(place), place, kNoId);
    }
    std::sort(order_.begin(), order_.end(), [](const auto& a, const auto& b) {
      return a.record.place.offset_bytes < b.record.place.offset_bytes;
    });
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const RecordRef& place = order_[i].record.place;
      if (order_[i - 1].record.place.offset_bytes != place.offset_bytes) continue;
      fail(Errc::corrupted, "{}: two different records have this offset",
           record_place(store_, plan_.pack, place.offset_bytes));
    }
  }

  // No reference leads to the copy of a version, but the translation has a line for it.
  RecordRef reference_to(const RecordRef& place) const {
    if (translation_ == nullptr) return place;
    const format::TranslationLine* line = translation_->find_new(place.offset_bytes);
    if (line == nullptr) {
      fail(Errc::corrupted, "{}: the pack's translation lacks the record",
           record_place(store_, plan_.pack, place.offset_bytes));
    }
    return {plan_.pack, line->old_offset_bytes, line->old_tag};
  }

  void add(const RecordRef& ref, const RecordRef& place, LiveSet::RecordId id) {
    order_.push_back({{}, id});
    order_.back().record.ref = ref;
    order_.back().record.place = place;
    order_.back().record.durable = id != kNoId && live_set_.is_durable(id);
  }

  void describe_records() {
    std::vector<std::uint64_t> places;
    places.reserve(order_.size());
    for (const auto& o : order_) places.push_back(o.record.place.offset_bytes);
    const auto lines = record_lines(store_, plan_.pack, places);
    assert(lines.size() == order_.size());
    plan_.records.reserve(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      PlannedRecord& r = order_[i].record;
      r.type = lines[i].type;
      r.raw_bytes = lines[i].raw_bytes;
      r.stored_bytes = lines[i].stored_bytes;
      r.items = lines[i].items;
      r.held = r.items;
      if (r.has_slots() && order_[i].id != kNoId) choose_slots(r, order_[i].id);
      plan_.records.push_back(std::move(r));
    }
    if (translation_ != nullptr && translation_->lines.size() > plan_.records.size()) drops_ = true;
  }

  void choose_slots(PlannedRecord& r, LiveSet::RecordId id) {
    const auto freed = store_.packs().locate(r.ref).dropped;
    for (const SlotRange& n : live_set_.durable_slots(id)) {
      if (!format::any_dropped(freed, n.first, n.count)) continue;
      fail(Errc::corrupted, "{}: a version needs slots that were freed",
           record_place(store_, plan_.pack, r.place.offset_bytes));
    }
    r.dropped = slots_in_either(slots_outside(live_set_.needed_slots(id), r.items), freed);
    r.held = r.items - std::min<std::uint64_t>(r.items, slots_in(freed));
    assert(r.held <= r.items);
    if (r.needed() < r.held) drops_ = true;
  }

  static constexpr LiveSet::RecordId kNoId = UINT32_MAX;
  struct Ordered {
    PlannedRecord record;
    LiveSet::RecordId id;
  };
  StoreDirectory& store_;
  const PackNeeds& needs_;
  LiveSet& live_set_;
  const Translation* translation_ = nullptr;
  std::vector<Ordered> order_;
  bool drops_ = false;  // the new file lacks a record or a slot
  PackPlan plan_;
};

}  // namespace

std::uint64_t PackPlan::estimated_bytes(double ratio) const {
  assert(ratio >= 0);
  std::uint64_t sum = format::kPackHeaderBytes + format::kPackTrailerBytes;
  for (const PlannedRecord& r : records) {
    double stored = r.stored_bytes;
    if (r.has_slots() && r.held != 0) {
      stored *= static_cast<double>(r.needed()) / static_cast<double>(r.held) * ratio;
    }
    sum += format::kRecordHeaderBytes + static_cast<std::uint64_t>(stored) + sealed_bytes +
           format::kRecordAlignBytes / 2 + kTranslationLineBytes + kIndexLineBytes +
           r.dropped.size() * kSlotRangeBytes;
  }
  return sum;
}

std::optional<PackPlan> plan_pack(StoreDirectory& store, std::uint64_t pack, const PackNeeds& needs,
                                  LiveSet& live_set, int level) {
  assert(live_set.has_slots() && level >= 1 && level <= format::kMaxTranslationLevel);
  return Planner(store, pack, needs, live_set).run(level);
}

}  // namespace vellum::store
