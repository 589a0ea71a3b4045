#include "remote/fetch/piece_index.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace vellum::remote {

PieceIndex::PieceIndex(std::span<const PieceRecord> records, std::uint64_t index_bytes) {
  assert(std::ranges::is_sorted(records, {}, &PieceRecord::ref));
  records_.reserve(records.size());
  std::uint64_t at = index_bytes;
  bool is_translated = false;
  for (const PieceRecord& record : records) {
    records_.push_back({record.ref, record.place, at, record.size_bytes,
                        static_cast<std::uint32_t>(dropped_.size()),
                        static_cast<std::uint32_t>(record.dropped.size())});
    dropped_.insert(dropped_.end(), record.dropped.begin(), record.dropped.end());
    is_translated |= !record.is_original();
    at += record.size_bytes;
  }
  if (!is_translated) return;
  for (const IndexedRecord& record : records_) places_.push_back(&record);
  std::sort(places_.begin(), places_.end(), [](const IndexedRecord* a, const IndexedRecord* b) {
    return std::pair(a->place.pack, a->place.offset_bytes) <
           std::pair(b->place.pack, b->place.offset_bytes);
  });
}

const IndexedRecord* PieceIndex::find(const format::RecordRef& ref) const noexcept {
  const auto at = std::partition_point(records_.begin(), records_.end(),
                                       [&](const IndexedRecord& r) { return r.ref < ref; });
  return at != records_.end() && at->ref == ref ? &*at : nullptr;
}

const IndexedRecord* PieceIndex::at_place(std::uint64_t pack,
                                          std::uint64_t offset_bytes) const noexcept {
  const auto is_before = [&](const IndexedRecord& r) {
    return r.place.pack < pack ||
           (r.place.pack == pack && r.place.offset_bytes + r.size_bytes <= offset_bytes);
  };
  const IndexedRecord* found = nullptr;
  if (places_.empty()) {
    const auto at = std::partition_point(records_.begin(), records_.end(), is_before);
    if (at != records_.end()) found = &*at;
  } else {
    const auto at = std::partition_point(places_.begin(), places_.end(),
                                         [&](const IndexedRecord* r) { return is_before(*r); });
    if (at != places_.end()) found = *at;
  }
  const bool holds =
      found != nullptr && found->place.pack == pack && found->place.offset_bytes <= offset_bytes;
  return holds ? found : nullptr;
}

}  // namespace vellum::remote
