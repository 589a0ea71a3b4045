#include "format/records/translation.hpp"

#include <gtest/gtest.h>

#include "format/records/record.hpp"
#include "format/wire/wire.hpp"
#include "samples.hpp"

namespace vellum::format {
namespace {

using samples::Bytes;
using samples::kTranslationAt;

bool accepted(const Bytes& raw, std::uint64_t end_bytes = kTranslationAt) {
  Translation out;
  const bool good = decode_translation(raw, end_bytes, out);
  EXPECT_TRUE(good || out == Translation());
  return good;
}

// Like encode_translation(), but writes any values: offsets in bytes, in any order.
Bytes table(const std::vector<std::uint64_t>& old_offsets,
            const std::vector<std::uint64_t>& new_offsets,
            const std::vector<std::vector<SlotRange>>& dropped = {}, int level = 3) {
  Bytes out;
  ByteWriter w(out);
  w.u8(static_cast<std::uint8_t>(level));
  w.varint(old_offsets.size());
  for (const auto& offsets : {old_offsets, new_offsets}) {
    std::uint64_t line = 0;
    for (const std::uint64_t at : offsets) {
      w.varint(at / 8 - line);  // wraps around if they do not ascend
      line = at / 8;
    }
  }
  for (std::size_t i = 0; i < 2 * old_offsets.size(); ++i) w.u32(7);
  for (std::size_t i = 0; i < old_offsets.size(); ++i) {
    w.varint(i < dropped.size() ? dropped[i].size() : 0);
  }
  for (const auto& ranges : dropped) {
    for (const SlotRange& r : ranges) w.varint(r.first);
  }
  for (const auto& ranges : dropped) {
    for (const SlotRange& r : ranges) w.varint(r.count - 1);
  }
  return out;
}

TEST(Translation, RoundTrip) {
  const Translation t = samples::translation();
  Translation back;
  ASSERT_TRUE(decode_translation(encode_translation(t), kTranslationAt, back));
  EXPECT_EQ(back, t);
  ASSERT_TRUE(decode_translation(encode_translation({}), kTranslationAt, back));
  EXPECT_TRUE(back.lines.empty());
}

TEST(Translation, Lookup) {
  const Translation t = samples::translation();
  for (const auto& line : t.lines) {
    EXPECT_EQ(t.find(line.old_offset_bytes), &line);
    EXPECT_EQ(t.find_new(line.new_offset_bytes), &line);
  }
  for (const std::uint64_t at : {0u, 56u, 72u, 184u, 8408u, 8424u, 1000000u}) {
    EXPECT_EQ(t.find(at), nullptr) << at;
  }
  EXPECT_EQ(t.find_new(224), nullptr);
  EXPECT_EQ(Translation().find(64), nullptr);
}

TEST(Translation, DroppedSlots) {
  const Translation t = samples::translation();
  const auto dropped = t.dropped_of(t.lines[0]);  // 0, 3-15
  EXPECT_TRUE(any_dropped(dropped, 0, 1));
  EXPECT_FALSE(any_dropped(dropped, 1, 2));
  EXPECT_TRUE(any_dropped(dropped, 1, 3));
  EXPECT_TRUE(any_dropped(dropped, 15, 1));
  EXPECT_FALSE(any_dropped(dropped, 16, 100));
  EXPECT_TRUE(any_dropped(dropped, 0, UINT32_MAX));
  EXPECT_FALSE(any_dropped(dropped, UINT32_MAX, UINT32_MAX));
  EXPECT_FALSE(any_dropped(t.dropped_of(t.lines[1]), 0, 100));
}

TEST(Translation, OrderBoundsAndOverlap) {
  EXPECT_TRUE(accepted(table({64, 120}, {64, 120})));
  EXPECT_TRUE(accepted(table({64, 1 << 20}, {288, 344})));
  EXPECT_FALSE(accepted(table({120, 64}, {64, 120})));  // old offsets do not ascend
  EXPECT_FALSE(accepted(table({64, 120}, {120, 64})));  // nor new ones
  EXPECT_FALSE(accepted(table({64, 64}, {64, 120})));   // duplicate
  EXPECT_FALSE(accepted(table({64, 120}, {64, 64})));   // two at the same offset
  EXPECT_FALSE(accepted(table({64, 112}, {64, 120})));  // closer than the size of a header
  EXPECT_FALSE(accepted(table({64, 120}, {64, 112})));
  EXPECT_FALSE(accepted(table({56}, {64})));  // in the pack's header
  EXPECT_FALSE(accepted(table({64}, {56})));
  EXPECT_FALSE(accepted(table({64}, {0})));
  EXPECT_TRUE(accepted(table({64}, {kTranslationAt - 56})));
  EXPECT_FALSE(accepted(table({64}, {kTranslationAt - 48})));  // inside the table itself
  EXPECT_FALSE(accepted(table({64}, {kTranslationAt})));       // the table
  EXPECT_FALSE(accepted(table({kMaxPackOffsetBytes}, {64})));
  EXPECT_FALSE(accepted(table({64}, {UINT64_MAX - 7})));
  EXPECT_FALSE(accepted(table({64}, {64}, {}, kMaxTranslationLevel + 1)));
}

TEST(Translation, Slots) {
  EXPECT_TRUE(accepted(table({64}, {64}, {{{0, 1}, {1, 5}}})));   // gaps: 0, then slot 2
  EXPECT_FALSE(accepted(table({64}, {64}, {{{0, 1}, {0, 5}}})));  // two adjacent ones
  EXPECT_TRUE(accepted(table({64}, {64}, {{{0, 32768}}})));
  EXPECT_FALSE(accepted(table({64}, {64}, {{{0, 32769}}})));
  EXPECT_FALSE(accepted(table({64}, {64}, {{{1, 32768}}})));
  EXPECT_FALSE(accepted(table({64}, {64}, {{{32767, 1}, {1, 1}}})));
  EXPECT_FALSE(accepted(table({64}, {64}, {{{32768, 1}}})));
}

TEST(Translation, HostileCounts) {
  Bytes lines{std::byte{3}};
  ByteWriter(lines).varint(UINT64_MAX);
  lines.resize(100);
  EXPECT_FALSE(accepted(lines));
  Bytes many{std::byte{3}};
  ByteWriter(many).varint(kMaxTranslatedRecords + 1);
  many.resize(20u << 20);
  EXPECT_FALSE(accepted(many));
  // One line that declares more ranges than the remaining bytes can have.
  Bytes ranges = table({64}, {64});
  ranges.pop_back();
  ByteWriter(ranges).varint(1u << 30);
  ranges.resize(ranges.size() + 100);
  EXPECT_FALSE(accepted(ranges));
  // Truncated anywhere, or with trailing bytes.
  const Bytes good = encode_translation(samples::translation());
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_FALSE(accepted(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)))) << n;
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(accepted(longer));
}

}  // namespace
}  // namespace vellum::format
