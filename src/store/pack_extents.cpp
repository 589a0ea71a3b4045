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

// By offset; empty where there is no index that can be read.
std::vector<IndexLine> read_index(StoreCore& store, std::uint64_t pack, std::uint64_t offset) {
  std::vector<IndexLine> lines;
  if (offset == 0) return lines;
  try {
    const RecordHeader h = read_record_header(store, pack, offset);
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
  const std::vector<IndexLine> lines = read_index(store, pack, index);
  std::vector<Extent> out;
  out.reserve(offsets.size());
  auto line = lines.begin();
  for (const std::uint64_t offset : offsets) {
    while (line != lines.end() && line->offset_bytes < offset) ++line;
    const auto after = line == lines.end() ? line : line + 1;
    const std::uint64_t next = after == lines.end() ? index : after->offset_bytes;
    if (line == lines.end() || line->offset_bytes != offset || next <= offset) {
      out.push_back(
          {offset, offset + format::record_extent_bytes(read_record_header(store, pack, offset))});
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

std::vector<format::RecordRef> hash_records(StoreCore& store, std::uint64_t pack) {
  std::vector<format::RecordRef> out;
  try {
    const base::File& file = open_pack(store, pack);
    const std::uint64_t index = index_offset(store, file, pack);
    for (const IndexLine& line : read_index(store, pack, index)) {
      if (line.type == RecordType::hashes) out.push_back({pack, line.offset_bytes, line.tag});
    }
    // A pack that is being written: from record to record, up to a hole or the end.
    for (std::uint64_t at = format::kPackHeaderBytes; index == 0;) {
      const RecordHeader h = read_record_header(store, pack, at);
      if (h.type == RecordType::hashes) out.push_back({pack, at, h.tag()});
      at += format::record_extent_bytes(h);
    }
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
  }
  return out;
}

Extent index_extent(StoreCore& store, std::uint64_t pack) {
  const base::File& file = open_pack(store, pack);
  const std::uint64_t offset = index_offset(store, file, pack);
  return offset == 0 ? Extent{} : Extent{offset, file.size_bytes()};
}

Extent version_copy_extent(StoreCore& store, std::uint64_t pack, std::uint64_t root_offset_bytes) {
  try {
    const RecordHeader root = read_record_header(store, pack, root_offset_bytes);
    if (root.type != RecordType::run_root) return {};
    const std::uint64_t at = root_offset_bytes + format::record_extent_bytes(root);
    const RecordHeader copy = read_record_header(store, pack, at);
    if (copy.type == RecordType::version) return {at, at + format::record_extent_bytes(copy)};
  } catch (const Error& e) {
    if (e.code() != Errc::damaged) throw;
  }
  return {};
}

}  // namespace vellum::store
