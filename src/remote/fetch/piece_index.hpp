// remote/fetch/piece_index.hpp: the records of a piece and their offsets in it.
//
// Immutable. All functions but the constructor may be called in the fault handler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remote/objects/piece.hpp"

namespace vellum::remote {

struct IndexedRecord {
  format::RecordRef ref;                       // the reference of versions
  format::RecordRef place;                     // the place in its own header
  std::uint64_t at_bytes = 0, size_bytes = 0;  // in the piece
  std::uint32_t first_dropped = 0, dropped = 0;
};

class PieceIndex {
 public:
  // REQUIRES: `records` ascend by reference. They begin after the index, which has `index_bytes`.
  PieceIndex(std::span<const PieceRecord> records, std::uint64_t index_bytes);

  // Null: the piece does not have the record.
  const IndexedRecord* find(const format::RecordRef& ref) const noexcept;
  std::span<const format::SlotRange> dropped_of(const IndexedRecord& record) const noexcept {
    return std::span(dropped_).subspan(record.first_dropped, record.dropped);
  }
  // The record with this byte of a pack's file. Null: none.
  const IndexedRecord* at_place(std::uint64_t pack, std::uint64_t offset_bytes) const noexcept;

 private:
  std::vector<IndexedRecord> records_;        // ascending by reference
  std::vector<const IndexedRecord*> places_;  // ascending by place; empty: the same order
  std::vector<format::SlotRange> dropped_;
};

}  // namespace vellum::remote
