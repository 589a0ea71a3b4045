// format/translation.hpp: where the records of a pack that was written again lie now.
//
// References to a record are never changed. A pack that is written again under its own name moves
// its records, and says in this table where each of them went; what is not in it was given back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/types.hpp"

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
  std::uint8_t level = 0;              // of zstd: with it, or a lower one, nothing gets smaller
  std::vector<TranslationLine> lines;  // ascending by old offset, and so by new offset
  std::vector<SlotRange> dropped;      // line by line; ascending and apart within a line

  std::span<const SlotRange> dropped_of(const TranslationLine& line) const noexcept {
    return std::span(dropped).subspan(line.first_dropped, line.dropped_count);
  }
  // The line of the record that was at `old_offset_bytes`, or nullptr. No allocation: used by the
  // fault handler.
  const TranslationLine* find(std::uint64_t old_offset_bytes) const noexcept;
  // The line of the record that is at `new_offset_bytes`, or nullptr.
  const TranslationLine* find_new(std::uint64_t new_offset_bytes) const noexcept;
  bool operator==(const Translation&) const = default;
};

// Whether any of slots [first, first + count) was given back. No allocation.
bool any_dropped(std::span<const SlotRange> dropped, std::uint32_t first,
                 std::uint64_t count) noexcept;

// Raw payload of a translation record. REQUIRES: what decode_translation() accepts.
std::vector<std::byte> encode_translation(const Translation& translation);
// Checks that offsets are possible and ascend without overlap, old and new, all the new ones below
// `end_bytes`, and that slots ascend. Memory is taken only for what the bytes can fill.
bool decode_translation(std::span<const std::byte> raw, std::uint64_t end_bytes, Translation& out);

}  // namespace vellum::format
