// remote/fetch/piece_index.hpp: which records a piece has, and where in it.
//
// Immutable. Everything but making it may happen in the fault handler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remote/objects/piece.hpp"

namespace vellum::remote {

struct IndexedRecord {
  format::RecordRef ref;                       // as versions refer to it
  format::RecordRef place;                     // as its own header has it
  std::uint64_t at_bytes = 0, size_bytes = 0;  // in the piece
  std::uint32_t first_dropped = 0, dropped = 0;
};

class PieceIndex {
 public:
  // The records begin behind the contents.
  PieceIndex(std::span<const PieceRecord> records, std::uint64_t index_bytes);

  // Null: the piece does not have it.
  const IndexedRecord* find(const format::RecordRef& ref) const noexcept;
  std::span<const format::SlotRange> dropped_of(const IndexedRecord& record) const noexcept {
    return std::span(dropped_).subspan(record.first_dropped, record.dropped);
  }
  // The record that takes the byte of a pack's file. Null: none does.
  const IndexedRecord* at_place(std::uint64_t pack, std::uint64_t offset_bytes) const noexcept;

 private:
  std::vector<IndexedRecord> records_;        // ascending by reference
  std::vector<const IndexedRecord*> places_;  // ascending by place; empty: the same order
  std::vector<format::SlotRange> dropped_;
};

}  // namespace vellum::remote
