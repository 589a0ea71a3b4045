#include "format/gc_census.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "format/wire/checks.hpp"
#include "format/wire/magic.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr WholeFileKind kCensusFile{kGcCensusMagic, kMaxGcCensusBytes, "not a census",
                                    "larger than any census"};
constexpr std::size_t kMinCensusRecordBytes = 7;  // distances of pack and offset, tag, size
constexpr std::uint64_t kMaxSizeLines = UINT32_MAX / kRecordAlignBytes;
constexpr std::size_t kMinCensusPartBytes = 7;  // three counts, a root, a range, a pack

void write_records(ByteWriter& w, const GcCensus& census) {
  const auto& records = census.records;
  assert(census.size_lines.size() == records.size());
  assert(records.size() <= UINT32_MAX);  // parts refer to them by 32-bit indices
  w.varint(records.size());
  std::uint64_t pack = 0;
  for (const auto& r : records) {
    w.varint(r.pack - pack);
    pack = r.pack;
  }
  RecordRef before;
  for (const auto& r : records) {
    const std::uint64_t from = r.pack == before.pack ? before.offset_bytes : 0;
    w.varint((r.offset_bytes - from) / kRecordAlignBytes);
    before = r;
  }
  for (const auto& r : records) w.u32(r.tag);
  for (const std::uint32_t lines : census.size_lines) w.varint(lines);
}

void write_part(ByteWriter& w, const CensusPart& part) {
  w.varint(part.roots.size());
  for (const std::uint32_t root : part.roots) w.varint(root);
  w.varint(part.records.size());
  std::uint32_t end = 0;
  for (const CensusRange& r : part.records) {
    w.varint(r.first - end);
    w.varint(r.count - 1);
    end = r.first + r.count;
  }
  w.varint(part.packs.size());
  std::uint64_t pack = 0;
  for (const std::uint64_t p : part.packs) {
    w.varint(p - pack);
    pack = p;
  }
}

bool read_records(ByteReader& in, std::vector<RecordRef>& out,
                  std::vector<std::uint32_t>& size_lines) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > in.left() / kMinCensusRecordBytes) return false;
  out.resize(static_cast<std::size_t>(n));
  std::uint64_t pack = 0;
  for (auto& r : out) {
    const std::uint64_t gap = in.varint();
    if (gap > UINT64_MAX - pack) return false;
    r.pack = pack += gap;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool same = i != 0 && out[i - 1].pack == out[i].pack;
    const std::uint64_t lines = in.varint();
    if (lines > kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    out[i].offset_bytes = (same ? out[i - 1].offset_bytes : 0) + lines * kRecordAlignBytes;
    if (!record_offset_ok(out[i].offset_bytes)) return false;
  }
  for (auto& r : out) r.tag = in.u32();
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i] <= out[i - 1]) return false;
  }
  size_lines.resize(out.size());
  for (auto& size : size_lines) {
    const std::uint64_t lines = in.varint();
    if (lines > kMaxSizeLines) return false;
    size = static_cast<std::uint32_t>(lines);
  }
  return in.ok();
}

bool read_roots(ByteReader& in, std::uint64_t records, std::vector<std::uint32_t>& out) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n == 0 || n > kMaxRunsPerVersion || n > in.left()) return false;
  out.resize(static_cast<std::size_t>(n));
  for (auto& root : out) {
    const std::uint64_t number = in.varint();
    if (number >= records) return false;
    root = static_cast<std::uint32_t>(number);
  }
  return in.ok();
}

bool read_ranges(ByteReader& in, std::uint64_t records, std::vector<CensusRange>& out) {
  assert(records <= UINT32_MAX);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n == 0 || n > in.left() / 2) return false;
  out.resize(static_cast<std::size_t>(n));
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t gap = in.varint(), more = in.varint();
    if (!in.ok() || (i != 0 && gap == 0)) return false;
    if (gap >= records - end || more >= records - end - gap) return false;
    out[i] = {static_cast<std::uint32_t>(end + gap), static_cast<std::uint32_t>(more + 1)};
    end += gap + more + 1;
    assert(end <= records);
  }
  return true;
}

bool read_part_packs(ByteReader& in, std::vector<std::uint64_t>& out) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n == 0 || n > in.left()) return false;
  out.resize(static_cast<std::size_t>(n));
  std::uint64_t pack = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t gap = in.varint();
    if (!in.ok() || gap > UINT64_MAX - pack || (i != 0 && gap == 0)) return false;
    out[i] = pack += gap;
  }
  return true;
}

// Whether each root is one of the part's records.
bool holds_roots(const CensusPart& part) {
  return std::ranges::all_of(part.roots, [&](std::uint32_t root) {
    const auto next = std::ranges::upper_bound(part.records, root, {}, &CensusRange::first);
    return next != part.records.begin() && root - std::prev(next)->first < std::prev(next)->count;
  });
}

}  // namespace

std::vector<std::byte> encode_gc_census(const GcCensus& census, const FileSeal& seal) {
  std::vector<std::byte> body;
  ByteWriter b(body);
  write_records(b, census);
  b.varint(census.parts.size());
  for (const CensusPart& part : census.parts) {
    write_part(b, part);
    if (body.size() > kMaxGcCensusBytes) return {};
  }
  assert(body.size() >= census.records.size() * kMinCensusRecordBytes);
  if (kWholeFileHeaderBytes + body.size() + 8 > kMaxGcCensusBytes) return {};
  return encode_whole_file(kCensusFile, body, seal);
}

const char* decode_gc_census(std::span<const std::byte> bytes, const FileSeal& seal,
                             GcCensus& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kCensusFile, bytes, seal, opened, body)) return problem;
  ByteReader in(body);
  GcCensus census;
  if (!read_records(in, census.records, census.size_lines)) return "malformed records";
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > in.left() / kMinCensusPartBytes) return "malformed";
  census.parts.resize(static_cast<std::size_t>(n));
  for (CensusPart& part : census.parts) {
    if (!read_roots(in, census.records.size(), part.roots) ||
        !read_ranges(in, census.records.size(), part.records) || !read_part_packs(in, part.packs) ||
        !holds_roots(part)) {
      return "malformed part";
    }
  }
  if (!in.done()) return "malformed";
  out = std::move(census);
  return nullptr;
}

}  // namespace vellum::format
