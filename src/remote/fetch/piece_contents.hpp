// remote/fetch/piece_contents.hpp: which records a piece has, and where in it.
//
// Immutable. Everything but making it may happen in the fault handler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "remote/objects/piece.hpp"

namespace vellum::remote {

class PieceContents {
 public:
  struct Record {
    format::RecordRef ref;                       // as versions refer to it
    format::RecordRef place;                     // as its own header has it
    std::uint64_t at_bytes = 0, size_bytes = 0;  // in the piece
    std::uint32_t first_dropped = 0, dropped = 0;
  };

  // The records begin behind the contents.
  PieceContents(std::span<const PieceRecord> records, std::uint64_t contents_bytes);

  // Null: the piece does not have it.
  const Record* find(const format::RecordRef& ref) const noexcept;
  std::span<const format::SlotRange> dropped_of(const Record& record) const noexcept {
    return std::span(dropped_).subspan(record.first_dropped, record.dropped);
  }
  // The record that takes the byte of a pack's file. Null: none does.
  const Record* at_place(std::uint64_t pack, std::uint64_t offset_bytes) const noexcept;

 private:
  std::vector<Record> records_;        // ascending by reference
  std::vector<const Record*> places_;  // ascending by place; empty: the same order
  std::vector<format::SlotRange> dropped_;
};

}  // namespace vellum::remote
