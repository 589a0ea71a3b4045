// Where records of a pack end (store/census.hpp).
#include <algorithm>
#include <array>

#include "store/census.hpp"
#include "store/record_io.hpp"
#include "store/util.hpp"

namespace vellum::store {

using format::IndexLine;
using format::RecordHeader;
using format::RecordType;
using format::Version;

namespace {

constexpr std::uint64_t kHashBytes = 32;

const base::File& open_pack(StoreCore& store, std::uint64_t pack) {
  store.packs().open(pack);
  return *store.packs().find(pack);
}

// Offset of the index record; 0: the pack is not sealed.
std::uint64_t index_offset(StoreCore& store, const base::File& file, std::uint64_t pack) {
  std::array<std::byte, format::kPackTrailerBytes> trailer;
  const std::uint64_t size = file.size_bytes();
  std::uint64_t offset = 0;
  if (size < format::kPackHeaderBytes + trailer.size()) return 0;
  file.pread(trailer, size - trailer.size());
  const bool sealed = format::decode_pack_trailer(trailer, pack, store.checksum_seed(), offset) &&
                      offset >= format::kPackHeaderBytes && offset < size - trailer.size();
  return sealed ? offset : 0;
}

RecordHeader read_header(StoreCore& store, const base::File& file, std::uint64_t pack,
                         std::uint64_t offset) {
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  file.pread(bytes, offset);
  RecordHeader h;
  const char* problem = format::decode_record_header(bytes, h);
  if (problem == nullptr && (h.pack != pack || h.offset_bytes != offset)) {
    problem = "misdirected record";
  }
  if (problem != nullptr) {
    fail(Errc::damaged, "{}: {}", record_place(store, pack, offset), problem);
  }
  return h;
}

// By offset; empty where there is no index that can be read.
std::vector<IndexLine> read_index(StoreCore& store, const base::File& file, std::uint64_t pack,
                                  std::uint64_t offset) {
  std::vector<IndexLine> lines;
  if (offset == 0) return lines;
  try {
    const RecordHeader h = read_header(store, file, pack, offset);
    const auto record = load_record(store, {pack, offset, h.tag()}, RecordType::index);
    if (!format::decode_index(record.raw, lines)) lines.clear();
  } catch (const Error& e) {
    if (e.code() != Errc::damaged) throw;
    lines.clear();
  }
  return lines;
}

}  // namespace

std::vector<Extent> record_extents(StoreCore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets) {
  const base::File& file = open_pack(store, pack);
  const std::uint64_t index = index_offset(store, file, pack);
  const std::vector<IndexLine> lines = read_index(store, file, pack, index);
  std::vector<Extent> out;
  out.reserve(offsets.size());
  auto line = lines.begin();
  for (const std::uint64_t offset : offsets) {
    while (line != lines.end() && line->offset_bytes < offset) ++line;
    const auto after = line == lines.end() ? line : line + 1;
    const std::uint64_t next = after == lines.end() ? index : after->offset_bytes;
    if (line == lines.end() || line->offset_bytes != offset || next <= offset) {
      out.push_back(
          {offset, offset + format::record_extent_bytes(read_header(store, file, pack, offset))});
      continue;
    }
    // The index does not say whether there is a hash.
    RecordHeader h;
    h.stored_bytes = line->stored_bytes;
    const std::uint64_t most = offset + format::record_extent_bytes(h) + kHashBytes;
    out.push_back({offset, std::min(most, next)});
  }
  return out;
}

Extent index_extent(StoreCore& store, std::uint64_t pack) {
  const base::File& file = open_pack(store, pack);
  const std::uint64_t offset = index_offset(store, file, pack);
  return offset == 0 ? Extent{} : Extent{offset, file.size_bytes()};
}

// It is the last record before the end that the version gives.
Extent version_copy_extent(StoreCore& store, const Version& version) {
  constexpr std::uint64_t kMost =
      format::kRecordHeaderBytes + kHashBytes + format::kMaxVersionBytes + 1024;
  const std::uint64_t end = version.active_pack_end_bytes;
  if (version.active_pack == 0 || end < format::kPackHeaderBytes + format::kRecordHeaderBytes) {
    return {};
  }
  try {
    const base::File& file = open_pack(store, version.active_pack);
    const std::uint64_t start =
        std::max<std::uint64_t>(format::kPackHeaderBytes, end > kMost ? (end - kMost) / 8 * 8 : 0);
    std::vector<std::byte> bytes(static_cast<std::size_t>(end - start));
    file.pread(bytes, start);
    for (std::size_t at = 0; at + format::kRecordHeaderBytes <= bytes.size(); at += 8) {
      RecordHeader h;
      const auto header = std::span(bytes).subspan(at, format::kRecordHeaderBytes);
      if (format::decode_record_header(header, h) == nullptr && h.type == RecordType::version &&
          h.pack == version.active_pack && h.offset_bytes == start + at &&
          start + at + format::record_extent_bytes(h) == end) {
        return {start + at, end};
      }
    }
  } catch (const Error& e) {
    if (e.code() != Errc::damaged) throw;  // nobody needs it but salvage
  }
  return {};
}

}  // namespace vellum::store
