#include "format/records/translation.hpp"

#include <algorithm>
#include <cassert>

#include "format/records/record.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

const TranslationLine* Translation::find(std::uint64_t old_offset_bytes) const noexcept {
  const auto at = std::partition_point(lines.begin(), lines.end(), [&](const TranslationLine& l) {
    return l.old_offset_bytes < old_offset_bytes;
  });
  return at != lines.end() && at->old_offset_bytes == old_offset_bytes ? &*at : nullptr;
}

const TranslationLine* Translation::find_new(std::uint64_t new_offset_bytes) const noexcept {
  const auto at = std::partition_point(lines.begin(), lines.end(), [&](const TranslationLine& l) {
    return l.new_offset_bytes < new_offset_bytes;
  });
  return at != lines.end() && at->new_offset_bytes == new_offset_bytes ? &*at : nullptr;
}

bool any_dropped(std::span<const SlotRange> dropped, std::uint32_t first,
                 std::uint64_t count) noexcept {
  const auto at = std::partition_point(dropped.begin(), dropped.end(), [&](const SlotRange& r) {
    return std::uint64_t{r.first} + r.count <= first;
  });
  return at != dropped.end() && at->first < first + count;
}

std::vector<std::byte> encode_translation(const Translation& t) {
  std::vector<std::byte> out;
  out.reserve(16 + t.lines.size() * 16 + t.dropped.size() * 2);
  ByteWriter w(out);
  w.u8(t.level);
  w.varint(t.lines.size());
  const auto write_offsets = [&](std::uint64_t TranslationLine::* offset) {
    std::uint64_t previous = 0;
    for (const auto& l : t.lines) {
      assert(l.*offset > previous && l.*offset % kRecordAlignBytes == 0);
      w.varint((l.*offset - previous) / kRecordAlignBytes);
      previous = l.*offset;
    }
  };
  write_offsets(&TranslationLine::old_offset_bytes);
  write_offsets(&TranslationLine::new_offset_bytes);
  for (const auto& l : t.lines) w.u32(l.old_tag);
  for (const auto& l : t.lines) w.u32(l.new_tag);
  for (const auto& l : t.lines) w.varint(l.dropped_count);
  for (const auto& l : t.lines) {
    std::uint32_t end = 0;
    for (const SlotRange& r : t.dropped_of(l)) {
      assert(r.first >= end && r.count != 0);
      w.varint(r.first - end);
      end = r.first + r.count;
    }
  }
  for (const auto& l : t.lines) {
    for (const SlotRange& r : t.dropped_of(l)) w.varint(r.count - 1);
  }
  assert(out.size() > t.lines.size() * kMinTranslationLineBytes);
  return out;
}

namespace {

// A record has at least a header, hence the distance of two records is at least a header's size.
void read_offsets(ByteReader& in, std::uint64_t TranslationLine::* offset, std::uint64_t end_bytes,
                  std::vector<TranslationLine>& lines) noexcept {
  std::uint64_t at = 0, least = kPackHeaderBytes;
  for (auto& l : lines) {
    const std::uint64_t gap = in.varint();
    if (gap > kMaxPackOffsetBytes / kRecordAlignBytes) in.fail();
    at += gap * kRecordAlignBytes;
    if (!in.ok() || at < least || at + kRecordHeaderBytes > end_bytes || !record_offset_ok(at)) {
      return in.fail();
    }
    l.*offset = at;
    least = at + kRecordHeaderBytes;
  }
}

void read_dropped(ByteReader& in, Translation& t) {
  std::uint64_t total = 0;
  for (auto& l : t.lines) {
    const std::uint64_t n = in.varint();
    if (!in.ok() || n > in.left() / 2 || total + n > in.left() / 2) return in.fail();
    l.first_dropped = static_cast<std::uint32_t>(total);
    l.dropped_count = static_cast<std::uint32_t>(n);
    total += n;
  }
  t.dropped.resize(static_cast<std::size_t>(total));
  for (auto& r : t.dropped) {
    const std::uint64_t gap = in.varint();
    if (gap >= kMaxSlotsPerPagesRecord) return in.fail();
    r.first = static_cast<std::uint32_t>(gap);
  }
  for (auto& r : t.dropped) {
    const std::uint64_t count = in.varint() + 1;
    if (count == 0 || count > kMaxSlotsPerPagesRecord) return in.fail();
    r.count = static_cast<std::uint32_t>(count);
  }
}

// Replaces the gaps by slots.
bool place_dropped(Translation& t) noexcept {
  for (const auto& l : t.lines) {
    assert(std::uint64_t{l.first_dropped} + l.dropped_count <= t.dropped.size());
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < l.dropped_count; ++i) {
      SlotRange& r = t.dropped[l.first_dropped + i];
      if (i != 0 && r.first == 0) return false;  // adjacent ranges, which an encoder merges
      const std::uint64_t first = end + r.first;
      end = first + r.count;
      if (end > kMaxSlotsPerPagesRecord) return false;
      r.first = static_cast<std::uint32_t>(first);
    }
  }
  return true;
}

}  // namespace

bool decode_translation(std::span<const std::byte> raw, std::uint64_t end_bytes, Translation& out) {
  out = {};
  ByteReader in(raw);
  Translation t;
  t.level = in.u8();
  const std::uint64_t n = in.varint();
  if (!in.ok() || t.level > kMaxTranslationLevel || n > kMaxTranslatedRecords ||
      n > in.left() / kMinTranslationLineBytes) {
    return false;
  }
  t.lines.resize(static_cast<std::size_t>(n));
  read_offsets(in, &TranslationLine::old_offset_bytes, kMaxPackOffsetBytes, t.lines);
  if (in.ok()) read_offsets(in, &TranslationLine::new_offset_bytes, end_bytes, t.lines);
  for (auto& l : t.lines) l.old_tag = in.u32();
  for (auto& l : t.lines) l.new_tag = in.u32();
  if (in.ok()) read_dropped(in, t);
  if (!in.done() || !place_dropped(t)) return false;
  out = std::move(t);
  return true;
}

}  // namespace vellum::format
