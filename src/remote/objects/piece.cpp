#include "remote/objects/piece.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "format/wire/checks.hpp"
#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"

namespace vellum::remote {
namespace {

using format::ByteReader;
using format::ByteWriter;
using format::kRecordAlignBytes;
using format::RecordType;

constexpr format::WholeFileKind kPiece{"VLMPIEC\n",
                                       kMaxPieceIndexBytes,
                                       "not a piece of packs",
                                       "too large for the index of a piece",
                                       0,
                                       true};
constexpr std::size_t kMinRecordBytes = 9;  // of an entry of the index
constexpr std::uint32_t kMaxSlots = format::kMaxSlotsPerPagesRecord;
constexpr std::uint64_t kMaxRecordLines = (format::kRecordHeaderBytes + format::kHashBytes +
                                           2 * std::uint64_t{format::kMaxRecordRawBytes}) /
                                          kRecordAlignBytes;

// Indexes, translations and hints are not sent to a remote.
bool type_ok(RecordType type) {
  return format::holds_pages(type) || type == RecordType::deltas || type == RecordType::map_block ||
         type == RecordType::run_root || type == RecordType::version;
}

void write_ranges(ByteWriter& w, std::span<const format::SlotRange> ranges) {
  std::uint32_t end = 0;
  for (const format::SlotRange& range : ranges) {
    w.varint(range.first - end);
    w.varint(range.count - 1);
    end = range.first + range.count;
  }
}

bool read_ranges(ByteReader& in, std::uint64_t count, std::vector<format::SlotRange>& out) {
  if (count > in.left() / 2) return false;
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = in.varint(), slots = in.varint();
    if (!in.ok() || gap > kMaxSlots || slots >= kMaxSlots || (i > 0 && gap == 0)) return false;
    const std::uint64_t first = end + gap;
    end = first + slots + 1;
    if (end > kMaxSlots) return false;
    out.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(slots + 1)});
  }
  return true;
}

bool read_refs(ByteReader& in, std::vector<PieceRecord>& out) {
  for (PieceRecord& r : out) {
    r.type = static_cast<RecordType>(in.u8());
    if (!type_ok(r.type)) return false;
  }
  std::uint64_t pack = 0;
  for (PieceRecord& r : out) {
    const std::uint64_t more = in.varint();
    if (more > UINT64_MAX - pack) return false;
    r.ref.pack = pack += more;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool is_first = i == 0 || out[i - 1].ref.pack != out[i].ref.pack;
    const std::uint64_t lines = in.varint();
    if (lines > format::kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    const std::uint64_t before = is_first ? 0 : out[i - 1].ref.offset_bytes;
    if (!is_first && lines == 0) return false;
    out[i].ref.offset_bytes = before + lines * kRecordAlignBytes;
    if (!format::record_offset_ok(out[i].ref.offset_bytes)) return false;
  }
  for (PieceRecord& r : out) r.ref.tag = in.u32();
  return in.ok();
}

bool read_sizes_and_forms(ByteReader& in, std::vector<PieceRecord>& out) {
  for (PieceRecord& r : out) {
    const std::uint64_t lines = in.varint();
    if (lines < format::kRecordHeaderBytes / kRecordAlignBytes || lines > kMaxRecordLines)
      return false;
    r.size_bytes = lines * kRecordAlignBytes;
    r.place = r.ref;
  }
  std::vector<std::uint64_t> forms(out.size());
  for (std::uint64_t& form : forms) form = in.varint();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (forms[i] == 0) continue;
    const std::uint64_t lines = in.varint();
    if (lines > format::kMaxPackOffsetBytes / kRecordAlignBytes) return false;
    out[i].place.offset_bytes = lines * kRecordAlignBytes;
    out[i].place.tag = in.u32();
    if (!format::record_offset_ok(out[i].place.offset_bytes)) return false;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (forms[i] > 1 && !read_ranges(in, forms[i] - 1, out[i].dropped)) return false;
  }
  return in.done();
}

}  // namespace

std::vector<std::byte> encode_piece_index(std::span<const PieceRecord> records,
                                          const format::FileSeal& seal) {
  std::vector<std::byte> body;
  assert(!records.empty());
  assert(std::ranges::is_sorted(records, {}, &PieceRecord::ref));
  ByteWriter w(body);
  w.varint(records.size());
  for (const PieceRecord& r : records) w.u8(static_cast<std::uint8_t>(r.type));
  std::uint64_t pack = 0;
  for (const PieceRecord& r : records) {
    w.varint(r.ref.pack - pack);
    pack = r.ref.pack;
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const bool same = i > 0 && records[i - 1].ref.pack == records[i].ref.pack;
    w.varint((records[i].ref.offset_bytes - (same ? records[i - 1].ref.offset_bytes : 0)) /
             kRecordAlignBytes);
  }
  for (const PieceRecord& r : records) w.u32(r.ref.tag);
  for (const PieceRecord& r : records) w.varint(r.size_bytes / kRecordAlignBytes);
  for (const PieceRecord& r : records) w.varint(r.is_original() ? 0 : 1 + r.dropped.size());
  for (const PieceRecord& r : records) {
    if (r.is_original()) continue;
    w.varint(r.place.offset_bytes / kRecordAlignBytes);
    w.u32(r.place.tag);
  }
  for (const PieceRecord& r : records) write_ranges(w, r.dropped);
  return encode_whole_file(kPiece, body, seal);
}

const char* decode_piece_index(std::span<const std::byte> bytes, const format::FileSeal& seal,
                               std::vector<PieceRecord>& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kPiece, bytes, seal, opened, body)) return problem;
  out.clear();
  ByteReader in(body);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > in.left() / kMinRecordBytes) return "malformed";
  out.resize(static_cast<std::size_t>(count));
  return read_refs(in, out) && read_sizes_and_forms(in, out) ? nullptr : "malformed";
}

bool TakenPlaces::take(const PieceRecord& record) {
  const std::pair from(record.place.pack, record.place.offset_bytes);
  const std::uint64_t end = from.second + record.size_bytes;
  const auto next = ends_.lower_bound(from);
  if (next != ends_.end() && next->first < std::pair(from.first, end)) return false;
  if (next != ends_.begin()) {
    const auto& [place, before_end] = *std::prev(next);
    if (place.first == from.first && before_end > from.second) return false;
  }
  ends_.emplace(from, end);
  return true;
}

std::uint64_t records_bytes(std::span<const PieceRecord> records) noexcept {
  std::uint64_t sum = 0;
  for (const PieceRecord& r : records) sum += r.size_bytes;
  return sum;
}

const char* check_record(const PieceRecord& record, std::span<const std::byte> bytes,
                         const format::RecordSeal& seal) {
  format::RecordHeader header;
  if (const char* problem = format::decode_record_header(bytes, header)) return problem;
  if (header.type != record.type) return "the record is of another type";
  if (format::record_extent_bytes(header) != record.size_bytes ||
      bytes.size() != record.size_bytes) {
    return "the record is of another size";
  }
  if (const char* problem = format::check_sealed(header, seal)) return problem;
  if (seal.keys == nullptr) return format::verify_record(bytes, header, record.place, seal.seed);
  std::vector<std::byte> opened(bytes.begin(), bytes.end());
  return format::open_record(opened, header, record.place, seal);
}

}  // namespace vellum::remote
