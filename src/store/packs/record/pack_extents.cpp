#include "store/packs/record/pack_extents.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/fail.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::IndexLine;
using format::RecordHeader;
using format::RecordType;

namespace {

const base::File& open_pack(PackStore& store, std::uint64_t pack) {
  store.packs().open(pack);
  return *store.packs().find(pack);
}

// Offset of the index record; 0 if the pack is not sealed.
std::uint64_t index_offset(PackStore& store, const base::File& file, std::uint64_t pack) {
  std::array<std::byte, format::kPackTrailerBytes> trailer;
  const std::uint64_t size = file.size_bytes();
  std::uint64_t offset = 0;
  if (size < format::kPackHeaderBytes + trailer.size()) return 0;
  file.pread(trailer, size - trailer.size());
  const bool sealed = format::decode_pack_trailer(trailer, pack, store.checksum_seed(), offset) &&
                      offset >= format::kPackHeaderBytes && offset < size - trailer.size();
  return sealed ? offset : 0;
}

// Index lines by offset; empty if no index can be read.
std::vector<IndexLine> read_index(PackStore& store, std::uint64_t pack, std::uint64_t offset) {
  std::vector<IndexLine> lines;
  if (offset == 0) return lines;
  try {
    const RecordHeader h = read_record_header(store, pack, offset);
    const auto record = load_record_at(store, {pack, offset, h.tag()}, RecordType::index);
    if (!format::decode_index(record.raw, lines)) lines.clear();
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    lines.clear();
  }
  return lines;
}

// The place of the record that has `offset` in references.
std::uint64_t place_of(PackStore& store, std::uint64_t pack, std::uint64_t offset) {
  const format::Translation* translation = store.packs().translation(pack);
  if (translation == nullptr) return offset;
  const format::TranslationLine* line = translation->find(offset);
  if (line == nullptr) {
    fail(Errc::corrupted, "{}: the record that was at byte {} has been freed",
         store.packs().path_of(pack), offset);
  }
  return line->new_offset_bytes;
}

IndexLine line_of(const RecordHeader& h) {
  return {h.type, h.offset_bytes, h.stored_bytes, h.raw_bytes, h.items, h.tag()};
}

std::uint32_t lines_of(const RecordHeader& h) {
  return static_cast<std::uint32_t>(format::record_extent_bytes(h) / format::kRecordAlignBytes);
}

std::vector<Extent> remote_extents(PackStore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets) {
  std::vector<Extent> out;
  out.reserve(offsets.size());
  for (const std::uint64_t at : offsets) {
    out.push_back({at, at + store.packs().describe(pack, at).front().size_bytes});
  }
  return out;
}

}  // namespace

std::vector<Extent> record_extents(PackStore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets,
                                   std::span<std::uint32_t> known) {
  assert(known.empty() || known.size() == offsets.size());
  assert(std::ranges::is_sorted(offsets));
  store.packs().open(pack);
  if (store.packs().is_remote(pack)) {
    std::fill(known.begin(), known.end(), 0);
    return remote_extents(store, pack, offsets);
  }
  const base::File& file = open_pack(store, pack);
  const std::uint64_t index = index_offset(store, file, pack);
  const std::vector<IndexLine> lines = read_index(store, pack, index);
  if (store.packs().translation(pack) != nullptr) {
    std::fill(known.begin(), known.end(), 0);
    known = {};
  }
  std::vector<Extent> out;
  out.reserve(offsets.size());
  auto line = lines.begin();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t at = place_of(store, pack, offsets[i]);
    while (line != lines.end() && line->offset_bytes < at) ++line;
    const auto after = line == lines.end() ? line : line + 1;
    const std::uint64_t next = after == lines.end() ? index : after->offset_bytes;
    if (line == lines.end() || line->offset_bytes != at || next <= at) {
      std::uint32_t once = 0;
      std::uint32_t& units = known.empty() ? once : known[i];
      if (units == 0) units = lines_of(read_record_header(store, pack, at));
      out.push_back({at, at + std::uint64_t{units} * format::kRecordAlignBytes});
      continue;
    }
    if (!known.empty()) known[i] = 0;
    // The index does not say whether there is a hash.
    out.push_back({at, std::min(extent_of(store, *line).to + format::kHashBytes, next)});
  }
  return out;
}

std::vector<IndexLine> record_lines(PackStore& store, std::uint64_t pack,
                                    std::span<const std::uint64_t> places) {
  assert(std::ranges::is_sorted(places));
  const base::File& file = open_pack(store, pack);
  const std::vector<IndexLine> lines = read_index(store, pack, index_offset(store, file, pack));
  std::vector<IndexLine> out;
  out.reserve(places.size());
  auto line = lines.begin();
  for (const std::uint64_t at : places) {
    while (line != lines.end() && line->offset_bytes < at) ++line;
    const bool known = line != lines.end() && line->offset_bytes == at;
    out.push_back(known ? *line : line_of(read_record_header(store, pack, at)));
  }
  return out;
}

Extent extent_of(const PackStore& store, const IndexLine& line) noexcept {
  RecordHeader h;
  h.sealed = store.is_encrypted();
  h.stored_bytes = line.stored_bytes;
  return {line.offset_bytes, line.offset_bytes + format::record_extent_bytes(h)};
}

std::vector<IndexLine> hash_records(PackStore& store, std::uint64_t pack) {
  std::vector<IndexLine> out;
  const auto take = [&](const IndexLine& line) {
    if (line.type == RecordType::hashes) out.push_back(line);
  };
  try {
    const base::File& file = open_pack(store, pack);
    const std::uint64_t index = index_offset(store, file, pack);
    for (const IndexLine& line : read_index(store, pack, index)) take(line);
    if (index != 0) return out;
    // A pack that is being written: from record to record, up to a hole or the end.
    for (std::uint64_t at = format::kPackHeaderBytes;;) {
      const RecordHeader h = read_record_header(store, pack, at);
      take(line_of(h));
      at += format::record_extent_bytes(h);
    }
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
  }
  return out;
}

std::vector<IndexedExtent> indexed_extents(PackStore& store, std::uint64_t pack) {
  const base::File& file = open_pack(store, pack);
  const std::uint64_t index = index_offset(store, file, pack);
  std::vector<IndexedExtent> out;
  if (index == 0) return out;
  for (const IndexLine& line : read_index(store, pack, index)) {
    out.push_back({extent_of(store, line), line.tag});
  }
  out.push_back({{index, file.size_bytes()}, 0});
  return out;
}

Extent index_extent(PackStore& store, std::uint64_t pack) {
  const base::File& file = open_pack(store, pack);
  const std::uint64_t size = file.size_bytes();
  if (store.packs().translation(pack) != nullptr) {
    std::array<std::byte, format::kPackHeaderBytes> bytes;
    file.pread(bytes, 0);
    format::PackHeader header;
    if (!format::decode_pack_header(bytes, header)) {
      fail(Errc::corrupted, "{}: the pack's header is corrupted", file.path());
    }
    return {header.translation_offset_bytes, size};
  }
  const std::uint64_t offset = index_offset(store, file, pack);
  return offset == 0 ? Extent{} : Extent{offset, size};
}

Extent version_copy_extent(PackStore& store, std::uint64_t pack, std::uint64_t root_offset_bytes) {
  try {
    store.packs().open(pack);
    if (store.packs().is_remote(pack)) return {};
    const std::uint64_t place = place_of(store, pack, root_offset_bytes);
    const RecordHeader root = read_record_header(store, pack, place);
    if (root.type != RecordType::run_root) return {};
    const std::uint64_t at = place + format::record_extent_bytes(root);
    const RecordHeader copy = read_record_header(store, pack, at);
    if (copy.type == RecordType::version) return {at, at + format::record_extent_bytes(copy)};
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
  }
  return {};
}

}  // namespace vellum::store
