#include "format/records/page_hashes.hpp"

#include <cassert>

#include "format/records/record.hpp"
#include "format/wire/checks.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

// Per record: the distances to the previous record, its tag, and the number of its hashes.
constexpr std::size_t kMinRecordBytes = 7;
constexpr std::size_t kMinHashBytes = 5;

// Consecutive hashes of one record.
struct HashGroup {
  RecordRef record;
  std::size_t count = 0;
};

std::vector<HashGroup> groups_of(std::span<const PageHash> hashes) {
  std::vector<HashGroup> out;
  for (const PageHash& h : hashes) {
    if (out.empty() || out.back().record != h.record) out.push_back({h.record, 0});
    ++out.back().count;
  }
  assert(out.size() <= hashes.size());
  return out;
}

bool read_groups(ByteReader& in, std::vector<HashGroup>& groups) noexcept {
  std::uint64_t pack = 0, line = 0;
  for (auto& g : groups) g.record.pack = pack += static_cast<std::uint64_t>(in.zigzag());
  for (auto& g : groups) {
    line += static_cast<std::uint64_t>(in.zigzag());
    if (line > kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    g.record.offset_bytes = line * kRecordAlignBytes;
    if (!record_offset_ok(g.record.offset_bytes)) return false;
  }
  for (auto& g : groups) g.record.tag = in.u32();
  std::uint64_t total = 0;
  for (auto& g : groups) {
    const std::uint64_t count = in.varint();
    if (!in.ok() || count == 0 || count > kMaxPageHashes) return false;
    total += count;
    g.count = static_cast<std::size_t>(count);
  }
  return in.ok() && total <= kMaxPageHashes && total <= in.left() / kMinHashBytes;
}

}  // namespace

std::vector<std::byte> encode_page_hashes(std::span<const PageHash> hashes) {
  assert(!hashes.empty() && hashes.size() <= kMaxPageHashes);
  const auto groups = groups_of(hashes);
  std::vector<std::byte> out;
  ByteWriter w(out);
  w.varint(groups.size());
  std::uint64_t pack = 0, line = 0;
  for (const auto& g : groups) {
    assert(g.record.offset_bytes % kRecordAlignBytes == 0 && g.count >= 1);
    w.zigzag(distance(g.record.pack, pack));
    pack = g.record.pack;
  }
  for (const auto& g : groups) {
    w.zigzag(distance(g.record.offset_bytes / kRecordAlignBytes, line));
    line = g.record.offset_bytes / kRecordAlignBytes;
  }
  for (const auto& g : groups) w.u32(g.record.tag);
  for (const auto& g : groups) w.varint(g.count);
  for (const PageHash& h : hashes) w.varint(h.slot);
  for (const PageHash& h : hashes) w.u32(h.hash);
  assert(out.size() > groups.size() * kMinRecordBytes + hashes.size() * kMinHashBytes);
  return out;
}

bool decode_page_hashes(std::span<const std::byte> raw, std::vector<PageHash>& out) {
  out.clear();
  ByteReader in(raw);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n == 0 || n > kMaxPageHashes || n > in.left() / kMinRecordBytes) return false;
  std::vector<HashGroup> groups(static_cast<std::size_t>(n));
  if (!read_groups(in, groups)) return false;
  std::vector<PageHash> hashes;
  for (const auto& g : groups) hashes.insert(hashes.end(), g.count, PageHash{g.record, 0, 0});
  assert(hashes.size() >= groups.size() && hashes.size() <= kMaxPageHashes);
  for (auto& h : hashes) {
    const std::uint64_t slot = in.varint();
    if (slot >= kMaxRecordRawBytes / kPageBytes) return false;
    h.slot = static_cast<std::uint32_t>(slot);
  }
  for (auto& h : hashes) h.hash = in.u32();
  if (!in.done()) return false;
  out = std::move(hashes);
  return true;
}

}  // namespace vellum::format
