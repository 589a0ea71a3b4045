#include "remote/objects/piece_list.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "format/wire/whole_file.hpp"
#include "format/wire/wire.hpp"
#include "remote/objects/piece.hpp"

namespace vellum::remote {
namespace {

constexpr format::WholeFileKind kList{
    "VLMLIST\n", kMaxListBytes, "not a list of pieces", "too large for a list of pieces", 0, true};

constexpr std::size_t kMinSpanBytes = 3;

void write_names(format::ByteWriter& w, const PieceList& list) {
  w.varint(list.size());
  for (const PieceName& piece : list) {
    w.u32(piece.content.generation);
    w.bytes(piece.content.hash);
    w.varint(piece.size_bytes);
    w.varint(piece.index_bytes);
  }
}

void write_spans(format::ByteWriter& w, const std::vector<PackSpan>& spans) {
  assert(!spans.empty());
  w.varint(spans.size());
  std::uint64_t pack = 0;
  for (const PackSpan& span : spans) {
    w.varint(span.pack - pack);
    w.varint(span.first_offset_bytes / format::kRecordAlignBytes);
    w.varint((span.last_offset_bytes - span.first_offset_bytes) / format::kRecordAlignBytes);
    pack = span.pack;
  }
}

bool read_spans(format::ByteReader& in, std::vector<PackSpan>& out) {
  constexpr std::uint64_t kMaxLines = format::kMaxPackOffsetBytes / format::kRecordAlignBytes;
  const std::uint64_t count = in.varint();
  if (!in.ok() || count == 0 || count > in.left() / kMinSpanBytes) return false;
  out.resize(static_cast<std::size_t>(count));
  std::uint64_t pack = 0;
  for (PackSpan& span : out) {
    const std::uint64_t more = in.varint(), first = in.varint(), lines = in.varint();
    if (!in.ok() || more == 0 || more > UINT64_MAX - pack || first > kMaxLines ||
        lines > kMaxLines - first) {
      return false;
    }
    span.pack = pack += more;
    span.first_offset_bytes = first * format::kRecordAlignBytes;
    span.last_offset_bytes = (first + lines) * format::kRecordAlignBytes;
  }
  return true;
}

bool read_names(format::ByteReader& in, PieceList& out) {
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > in.left() / kMinPieceBytes) return false;
  out.resize(static_cast<std::size_t>(count));
  for (PieceName& piece : out) {
    piece.content.generation = in.u32();
    const auto hash = in.bytes(piece.content.hash.size());
    if (!in.ok()) return false;
    std::memcpy(piece.content.hash.data(), hash.data(), hash.size());
    piece.size_bytes = in.varint();
    piece.index_bytes = in.varint();
    if (piece.size_bytes > kMaxPieceBytes || piece.index_bytes > kMaxPieceIndexBytes ||
        piece.index_bytes >= piece.size_bytes) {
      return false;
    }
  }
  return in.ok();
}

// The frames inside a list are plain: the list is sealed as a whole.
void write_roots(format::ByteWriter& w, const OpeningData& opening, const format::Uuid& store_id) {
  const auto root_index = opening.roots.empty() ? std::vector<std::byte>()
                                                : encode_piece_index(opening.roots, store_id);
  w.varint(root_index.size());
  w.bytes(root_index);
  w.bytes(opening.root_bytes);
}

bool read_roots(format::ByteReader& in, const format::Uuid& store_id, OpeningData& out) {
  const std::uint64_t index_bytes = in.varint();
  if (index_bytes == 0) return in.ok();
  const auto root_index = in.bytes(index_bytes);
  if (!in.ok() || decode_piece_index(root_index, store_id, out.roots) != nullptr) return false;
  const auto records = in.bytes(records_bytes(out.roots));
  out.root_bytes.assign(records.begin(), records.end());
  return in.ok();
}

void write_pages_in_use(format::ByteWriter& w, const PagesInUse& in_use,
                        const format::Uuid& store_id) {
  if (in_use.ranges.empty()) return;
  const auto set = format::encode_working_set({{}, in_use.ranges}, store_id);
  w.varint(set.size());
  w.bytes(set);
  w.varint(in_use.pieces.size());
  for (const std::uint32_t piece : in_use.pieces) w.varint(piece);
}

// A list without a working set ends here.
bool read_pages_in_use(format::ByteReader& in, const format::Uuid& store_id, std::size_t pieces,
                       PagesInUse& out) {
  if (in.done()) return true;
  format::WorkingSet set;
  const auto bytes = in.bytes(in.varint());
  if (!in.ok() || format::decode_working_set(bytes, store_id, set) != nullptr) return false;
  if (set.owner != format::WorkingSetOwner{} || set.ranges.empty() ||
      set.ranges.size() > kMaxRangesInUse) {
    return false;
  }
  out.ranges = std::move(set.ranges);
  const std::uint64_t count = in.varint();
  if (!in.ok() || count > pieces) return false;
  std::vector<bool> seen(pieces);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t piece = in.varint();
    if (!in.ok() || piece >= pieces || seen[static_cast<std::size_t>(piece)]) return false;
    seen[static_cast<std::size_t>(piece)] = true;
    out.pieces.push_back(static_cast<std::uint32_t>(piece));
  }
  return in.done();
}

}  // namespace

std::vector<PackSpan> spans_of(std::span<const PieceRecord> records) {
  assert(!records.empty());
  assert(std::ranges::is_sorted(records, {}, &PieceRecord::ref));
  std::vector<PackSpan> out;
  for (const PieceRecord& record : records) {
    const format::RecordRef& ref = record.ref;
    if (out.empty() || out.back().pack != ref.pack) {
      out.push_back({ref.pack, ref.offset_bytes, ref.offset_bytes});
    }
    out.back().last_offset_bytes = ref.offset_bytes;
  }
  return out;
}

void write_pieces(format::ByteWriter& w, const VersionPieces& pieces) {
  write_names(w, pieces.list);
  for (const auto& spans : pieces.opening.spans) write_spans(w, spans);
}

bool read_pieces(format::ByteReader& in, VersionPieces& out) {
  if (!read_names(in, out.list)) return false;
  for (std::size_t i = 0; i < out.list.size(); ++i) {
    if (!read_spans(in, out.opening.spans.emplace_back())) return false;
  }
  return true;
}

void write_end(format::ByteWriter& w, const VersionPieces& pieces, const format::Uuid& store_id) {
  write_roots(w, pieces.opening, store_id);
  write_pages_in_use(w, pieces.in_use, store_id);
}

bool read_end(format::ByteReader& in, const format::Uuid& store_id, VersionPieces& out) {
  return read_roots(in, store_id, out.opening) &&
         read_pages_in_use(in, store_id, out.list.size(), out.in_use);
}

std::vector<std::byte> encode_piece_list(const VersionPieces& pieces,
                                         const format::FileSeal& seal) {
  std::vector<std::byte> body;
  assert(pieces.list.size() == pieces.opening.spans.size());
  format::ByteWriter w(body);
  write_pieces(w, pieces);
  write_end(w, pieces, seal.store_id);
  return encode_whole_file(kList, body, seal);
}

const char* decode_piece_list(std::span<const std::byte> bytes, const format::FileSeal& seal,
                              VersionPieces& out) {
  std::vector<std::byte> opened;
  std::span<const std::byte> body;
  if (const char* problem = open_whole_file(kList, bytes, seal, opened, body)) return problem;
  out = {};
  format::ByteReader in(body);
  return read_pieces(in, out) && read_end(in, seal.store_id, out) ? nullptr : "malformed";
}

}  // namespace vellum::remote
