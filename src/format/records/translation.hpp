// format/records/translation.hpp: the current offsets of the records of a rewritten pack.
//
// References to a record never change. Rewriting a pack under its own name moves its records. This
// table maps their old offsets to the new ones. A record that it does not list was freed.
#pragma once

#include <cassert>
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
  std::uint8_t level = 0;              // of zstd: no level up to it saves more
  std::vector<TranslationLine> lines;  // ascending by old offset, hence by new offset
  std::vector<SlotRange> dropped;      // line by line; ascending and not adjacent within a line

  std::span<const SlotRange> dropped_of(const TranslationLine& line) const noexcept {
    assert(std::uint64_t{line.first_dropped} + line.dropped_count <= dropped.size());
    return std::span(dropped).subspan(line.first_dropped, line.dropped_count);
  }
  // The line of the record that was at `old_offset_bytes`, or nullptr. Does not allocate: the fault
  // handler uses it.
  const TranslationLine* find(std::uint64_t old_offset_bytes) const noexcept;
  // The line of the record now at `new_offset_bytes`, or nullptr.
  const TranslationLine* find_new(std::uint64_t new_offset_bytes) const noexcept;
  bool operator==(const Translation&) const = default;
};

// Whether any of slots [first, first + count) was freed. REQUIRES: `dropped` ascends. Does not
// allocate.
bool any_dropped(std::span<const SlotRange> dropped, std::uint32_t first,
                 std::uint64_t count) noexcept;

// Raw payload of a translation record. REQUIRES: decode_translation() would accept it.
std::vector<std::byte> encode_translation(const Translation& translation);
// Checks that old and new offsets are possible and ascend without overlap, that all new ones are
// below `end_bytes`, and that slots ascend. Allocates in proportion to the size of `raw`.
bool decode_translation(std::span<const std::byte> raw, std::uint64_t end_bytes, Translation& out);

}  // namespace vellum::format
