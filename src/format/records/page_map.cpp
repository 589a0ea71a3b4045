#include "format/records/page_map.hpp"

#include <cassert>
#include <unordered_map>

#include "format/wire/checks.hpp"
#include "format/wire/wire.hpp"

namespace vellum::format {
namespace {

constexpr std::size_t kMinRootLineBytes = 8;

struct RecordRefHash {
  std::size_t operator()(const RecordRef& r) const noexcept {
    return static_cast<std::size_t>((r.pack * 0x9e3779b97f4a7c15ULL) ^
                                    (r.offset_bytes * 0xff51afd7ed558ccdULL) ^ r.tag);
  }
};

// The distinct records of a block in the order in which entries first use them. This order lets a
// reader keep the table in its output and spread it backwards (see spread_records()).
struct RecordTable {
  std::vector<RecordRef> records;
  std::vector<std::uint32_t> index_of_entry;  // 0 for kind zero, unused
};

RecordTable build_record_table(std::span<const MapEntry> entries) {
  RecordTable t;
  t.index_of_entry.resize(entries.size());
  std::unordered_map<RecordRef, std::uint32_t, RecordRefHash> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind == PageKind::zero) continue;
    const auto [at, fresh] =
        seen.try_emplace(entries[i].record, static_cast<std::uint32_t>(t.records.size()));
    if (fresh) t.records.push_back(entries[i].record);
    t.index_of_entry[i] = at->second;
    assert(t.index_of_entry[i] <= i);  // spread_records() relies on it
  }
  assert(t.records.size() <= entries.size());
  return t;
}

void write_record_table(ByteWriter& w, std::span<const RecordRef> records) {
  w.varint(records.size());
  std::uint64_t pack = 0;
  for (const auto& r : records) {
    w.zigzag(distance(r.pack, pack));
    pack = r.pack;
  }
  std::uint64_t line = 0;
  for (const auto& r : records) {
    assert(r.offset_bytes % kRecordAlignBytes == 0);
    w.zigzag(distance(r.offset_bytes / kRecordAlignBytes, line));
    line = r.offset_bytes / kRecordAlignBytes;
  }
  for (const auto& r : records) w.u32(r.tag);
}

void write_positions(ByteWriter& w, std::span<const MapEntry> entries) {
  for (const auto& e : entries) w.varint(std::uint64_t{e.count} - 1);
  PageNumber end = 0;
  for (const auto& e : entries) {
    w.varint(e.page + 1 - end);  // 0: the same page again, a chain; 1: adjacent
    end = e.page + e.count;
  }
  for (const auto& e : entries)
    w.varint(static_cast<std::uint64_t>(e.kind) | std::uint64_t{e.depth} << 2);
}

void write_places(ByteWriter& w, std::span<const MapEntry> entries, const RecordTable& t) {
  std::uint32_t previous = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind == PageKind::zero) continue;
    w.zigzag(std::int64_t{t.index_of_entry[i]} - std::int64_t{previous});
    previous = t.index_of_entry[i];
  }
  std::vector<std::uint32_t> next_slot(t.records.size(), 0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind == PageKind::zero) continue;
    std::uint32_t& next = next_slot[t.index_of_entry[i]];
    w.zigzag(std::int64_t{entries[i].slot} - std::int64_t{next});
    next = entries[i].slot + entries[i].count;
  }
}

// Stores the table in the `record` fields of the first entries. spread_records() reads it there.
bool read_record_table(ByteReader& in, std::size_t n, std::span<MapEntry> out,
                       std::size_t& records) noexcept {
  assert(n <= out.size());
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > n) return false;
  records = static_cast<std::size_t>(count);
  std::uint64_t pack = 0;
  for (std::size_t i = 0; i < records; ++i) {
    pack += static_cast<std::uint64_t>(in.zigzag());
    out[i].record.pack = pack;
    if (pack == 0) return false;
  }
  std::uint64_t line = 0;
  for (std::size_t i = 0; i < records; ++i) {
    line += static_cast<std::uint64_t>(in.zigzag());
    if (line > kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    out[i].record.offset_bytes = line * kRecordAlignBytes;
    if (!record_offset_ok(out[i].record.offset_bytes)) return false;
  }
  for (std::size_t i = 0; i < records; ++i) out[i].record.tag = in.u32();
  return in.ok();
}

// `older` follows `e` in the block and names the same page.
bool chain_ok(const MapEntry& e, const MapEntry& older) noexcept {
  return e.kind == PageKind::delta && e.count == 1 && older.count == 1 && older.depth < e.depth;
}

bool read_pages(ByteReader& in, std::span<MapEntry> out) noexcept {
  for (auto& e : out) {
    const std::uint64_t more = in.varint();
    if (more >= kMaxPages || more >= UINT32_MAX) return false;
    e.count = static_cast<std::uint32_t>(more + 1);
  }
  PageNumber end = 0;
  for (auto& e : out) {
    const std::uint64_t gap = in.varint();  // page - end + 1
    if (gap > kMaxPages || (gap == 0 && end == 0)) return false;
    e.page = end + gap - 1;
    if (e.page >= kMaxPages || e.count > kMaxPages - e.page) return false;
    end = e.page + e.count;
  }
  return in.ok();
}

bool kind_ok(const MapEntry& e) noexcept {
  if (e.kind == PageKind::delta) return e.depth >= 1 && e.count == 1;
  return e.depth == 0;
}

bool read_kinds(ByteReader& in, std::span<MapEntry> out) noexcept {
  for (auto& e : out) {
    const std::uint64_t v = in.varint();
    if ((v & 3) > static_cast<std::uint64_t>(PageKind::delta) || v >> 2 > UINT8_MAX) return false;
    e.kind = static_cast<PageKind>(v & 3);
    e.depth = static_cast<std::uint8_t>(v >> 2);
    if (!kind_ok(e)) return false;
  }
  for (std::size_t i = 1; i < out.size(); ++i) {
    // A page repeats only after a gap of zero: this one steps back to the last page of the previous
    // entry.
    const bool overlaps = out[i].page < out[i - 1].page + out[i - 1].count;
    if (overlaps && !chain_ok(out[i - 1], out[i])) return false;
  }
  return in.ok();
}

// Checks first-use order: a new index is always the next one, so index[i] <= i.
bool read_indices(ByteReader& in, std::span<const MapEntry> out, std::size_t records,
                  std::uint16_t* index) noexcept {
  assert(records <= out.size() && out.size() <= kMaxEntriesPerMapBlock);
  std::uint64_t at = 0;
  std::size_t used = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].kind == PageKind::zero) continue;
    at += static_cast<std::uint64_t>(in.zigzag());
    if (at > used || at >= records) return false;
    if (at == used) ++used;
    index[i] = static_cast<std::uint16_t>(at);
  }
  return in.ok() && used == records;
}

bool read_slots(ByteReader& in, std::span<MapEntry> out, const std::uint16_t* index) noexcept {
  static_assert(kMaxSlotsPerPagesRecord <= UINT16_MAX && kMaxDeltasPerBatch <= UINT16_MAX);
  assert(out.size() <= kMaxEntriesPerMapBlock);
  std::uint16_t next_slot[kMaxEntriesPerMapBlock] = {};
  for (std::size_t i = 0; i < out.size(); ++i) {
    MapEntry& e = out[i];
    e.slot = 0;
    if (e.kind == PageKind::zero) continue;
    const std::uint64_t slot = next_slot[index[i]] + static_cast<std::uint64_t>(in.zigzag());
    const std::uint64_t slots =
        e.kind == PageKind::base ? kMaxSlotsPerPagesRecord : kMaxDeltasPerBatch;
    if (slot >= slots || e.count > slots - slot) return false;
    e.slot = static_cast<std::uint32_t>(slot);
    next_slot[index[i]] = static_cast<std::uint16_t>(slot + e.count);
  }
  return in.ok();
}

// Copies from the last entry to the first. Since index[i] <= i, a record of the table is
// overwritten only after its last use.
void spread_records(std::span<MapEntry> out, const std::uint16_t* index) noexcept {
  for (std::size_t i = out.size(); i-- > 0;) {
    assert(out[i].kind == PageKind::zero || index[i] <= i);
    out[i].record = out[i].kind == PageKind::zero ? RecordRef{} : out[index[i]].record;
  }
}

}  // namespace

std::vector<std::byte> encode_map_block(std::span<const MapEntry> entries) {
  assert(!entries.empty() && entries.size() <= kMaxEntriesPerMapBlock);
  const RecordTable table = build_record_table(entries);
  std::vector<std::byte> out;
  out.reserve(32 + entries.size() * 8 + table.records.size() * 12);
  ByteWriter w(out);
  w.varint(entries.size());
  write_record_table(w, table.records);
  write_positions(w, entries);
  write_places(w, entries, table);
  assert(out.size() >= 1 + entries.size() * 3);
  return out;
}

int decode_map_block(std::span<const std::byte> raw, std::span<MapEntry> out) noexcept {
  if (raw.size() > kMaxMapBlockRawBytes) return -1;
  ByteReader in(raw);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n < 1 || n > kMaxEntriesPerMapBlock || n > out.size()) return -1;
  out = out.first(static_cast<std::size_t>(n));
  std::uint16_t index[kMaxEntriesPerMapBlock];
  std::size_t records = 0;
  if (!read_record_table(in, out.size(), out, records)) return -1;
  if (!read_pages(in, out) || !read_kinds(in, out)) return -1;
  if (!read_indices(in, out, records, index) || !read_slots(in, out, index)) return -1;
  if (!in.done()) return -1;
  spread_records(out, index);
  return static_cast<int>(n);
}

bool is_described(std::span<const MapEntry> entries, const MapBlockRef& block) noexcept {
  return entries.size() == block.entries && !entries.empty() &&
         entries.front().page == block.first_page &&
         entries.back().page + entries.back().count - 1 == block.last_page;
}

std::vector<std::byte> encode_run_root(const RunRoot& root) {
  const std::vector<MapBlockRef>& blocks = root.blocks;
  std::vector<std::byte> out;
  out.reserve(20 + blocks.size() * 16 + root.packs.size() * 10);
  ByteWriter w(out);
  w.varint(blocks.size());
  PageNumber next = 0;
  for (const auto& b : blocks) {
    assert(b.first_page >= next && b.last_page >= b.first_page && b.entries >= 1);
    w.varint(b.first_page - next);
    next = b.last_page + 1;
  }
  for (const auto& b : blocks) w.varint(b.last_page - b.first_page);
  std::uint64_t line = 0;
  for (const auto& b : blocks) {
    assert(b.offset_bytes % kRecordAlignBytes == 0);
    w.zigzag(distance(b.offset_bytes / kRecordAlignBytes, line));
    line = b.offset_bytes / kRecordAlignBytes;
  }
  for (const auto& b : blocks) w.varint(b.entries - 1);
  for (const auto& b : blocks) w.u32(b.tag);
  w.varint(root.packs.size());
  std::uint64_t previous = 0;
  for (const std::uint64_t pack : root.packs) {
    assert(pack > previous);
    w.varint(pack - previous - 1);
    previous = pack;
  }
  assert(out.size() > blocks.size() * kMinRootLineBytes);
  return out;
}

namespace {

// The gaps precede the spans. Page numbers are therefore known only after both columns.
bool read_block_pages(ByteReader& in, std::vector<MapBlockRef>& blocks) noexcept {
  for (auto& b : blocks) b.first_page = in.varint();
  PageNumber next = 0;
  for (auto& b : blocks) {
    const std::uint64_t span = in.varint();
    if (b.first_page >= kMaxPages || span >= kMaxPages) return false;
    b.first_page += next;
    b.last_page = b.first_page + span;
    if (b.last_page >= kMaxPages) return false;
    next = b.last_page + 1;
  }
  return in.ok();
}

bool read_block_places(ByteReader& in, std::vector<MapBlockRef>& blocks) noexcept {
  std::uint64_t line = 0;
  for (auto& b : blocks) {
    line += static_cast<std::uint64_t>(in.zigzag());
    if (line > kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    b.offset_bytes = line * kRecordAlignBytes;
    if (!record_offset_ok(b.offset_bytes)) return false;
  }
  for (auto& b : blocks) {
    const std::uint64_t more = in.varint();
    if (more >= kMaxEntriesPerMapBlock) return false;
    b.entries = static_cast<std::uint32_t>(more + 1);
  }
  for (auto& b : blocks) b.tag = in.u32();
  return in.ok();
}

bool read_packs(ByteReader& in, std::vector<std::uint64_t>& packs) {
  const std::uint64_t n = in.varint();
  if (!in.ok() || n > in.left()) return false;
  packs.resize(static_cast<std::size_t>(n));
  std::uint64_t previous = 0;
  for (auto& pack : packs) {
    const std::uint64_t gap = in.varint();
    if (!in.ok() || gap >= UINT64_MAX - previous) return false;
    pack = previous + gap + 1;
    previous = pack;
  }
  return true;
}

}  // namespace

bool decode_run_root(std::span<const std::byte> raw, RunRoot& out) {
  out = {};
  ByteReader in(raw);
  const std::uint64_t n = in.varint();
  if (!in.ok() || n < 1 || n > in.left() / kMinRootLineBytes) return false;
  RunRoot root;
  root.blocks.resize(static_cast<std::size_t>(n));
  if (!read_block_pages(in, root.blocks) || !read_block_places(in, root.blocks)) return false;
  if (!read_packs(in, root.packs) || !in.done()) return false;
  out = std::move(root);
  return true;
}

}  // namespace vellum::format
