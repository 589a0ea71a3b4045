#include "format/records/based_pages.hpp"

#include <cassert>

#include "format/wire/checks.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {

// A line is the distance from the previous base page in units of kRecordAlignBytes. 0: another slot
// of the same record.
std::vector<std::byte> encode_base_pages(std::span<const BasePage> bases) {
  assert(!bases.empty() && bases.size() <= kMaxBasePages);
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.varint(bases.size());
  std::uint64_t before = 0;
  for (const BasePage& b : bases) {
    assert(b.offset_bytes % kRecordAlignBytes == 0);
    w.varint((b.offset_bytes - before) / kRecordAlignBytes);
    if (b.offset_bytes != before) w.u32(b.tag);
    w.varint(b.slot);
    before = b.offset_bytes;
  }
  return out;
}

std::size_t decode_base_pages(std::span<const std::byte> stored, std::uint64_t offset_bytes,
                              std::span<BasePage> out, std::size_t& list_bytes) noexcept {
  assert(out.size() >= kMaxBasePages);
  ByteReader in(stored);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > kMaxBasePages) return 0;
  BasePage before;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t lines = in.varint();
    if (!in.ok() || lines > kMaxPackOffsetBytes / kRecordAlignBytes) return 0;
    if (i == 0 && lines == 0) return 0;
    BasePage b{before.offset_bytes + lines * kRecordAlignBytes, before.tag, 0};
    if (lines != 0) b.tag = in.u32();
    const std::uint64_t slot = in.varint();
    if (!in.ok() || slot >= kMaxSlotsPerPagesRecord) return 0;
    b.slot = static_cast<std::uint32_t>(slot);
    if (!record_offset_ok(b.offset_bytes) || b.offset_bytes >= offset_bytes) return 0;
    if (lines == 0 && b.slot <= before.slot) return 0;
    out[i] = before = b;
  }
  assert(in.left() < stored.size());
  list_bytes = stored.size() - in.left();
  return static_cast<std::size_t>(count);
}

}  // namespace vellum::format
