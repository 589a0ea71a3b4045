// format/records/translation.hpp: the present places of the records of a rewritten pack.
//
// References to a record never change. A pack rewritten under its own name moves its records, and
// this table says where each one went. Records missing from it were given back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

// Slots [first, first + count) of a record.
struct SlotRange {
  std::uint32_t first = 0, count = 0;
  bool operator==(const SlotRange&) const = default;
};

struct TranslationLine {
  std::uint64_t old_offset_bytes = 0, new_offset_bytes = 0;
  std::uint32_t old_tag = 0, new_tag = 0;
  std::uint32_t first_dropped = 0, dropped_count = 0;  // into Translation::dropped
  bool operator==(const TranslationLine&) const = default;
};

struct Translation {
  std::uint8_t level = 0;              // of zstd: neither it nor a lower one saves more
  std::vector<TranslationLine> lines;  // ascending by old offset, and so by new offset
  std::vector<SlotRange> dropped;      // line by line; ascending and apart within a line

  std::span<const SlotRange> dropped_of(const TranslationLine& line) const noexcept {
    return std::span(dropped).subspan(line.first_dropped, line.dropped_count);
  }
  // The line of the record that was at `old_offset_bytes`, or nullptr. Does not allocate: the fault
  // handler uses it.
  const TranslationLine* find(std::uint64_t old_offset_bytes) const noexcept;
  // The line of the record now at `new_offset_bytes`, or nullptr.
  const TranslationLine* find_new(std::uint64_t new_offset_bytes) const noexcept;
  bool operator==(const Translation&) const = default;
};

// Whether any of slots [first, first + count) was given back. Does not allocate.
bool any_dropped(std::span<const SlotRange> dropped, std::uint32_t first,
                 std::uint64_t count) noexcept;

// Raw payload of a translation record. REQUIRES: decode_translation() would accept it.
std::vector<std::byte> encode_translation(const Translation& translation);
// Checks that old and new offsets are possible and ascend without overlap, that all new ones lie
// below `end_bytes`, and that slots ascend. Allocates only for what the bytes can fill.
bool decode_translation(std::span<const std::byte> raw, std::uint64_t end_bytes, Translation& out);

}  // namespace vellum::format
