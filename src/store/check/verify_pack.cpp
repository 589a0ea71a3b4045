#include "store/check/verify_pack.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/fail.hpp"
#include "store/packs/header_error.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::RecordHeader;

std::optional<std::uint64_t> check_pack_header(StoreDirectory& store, std::uint64_t pack,
                                               std::string& reason) {
  try {
    const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
    std::array<std::byte, format::kPackHeaderBytes> bytes;
    file->pread(bytes, 0);
    format::PackHeader header;
    if (!format::decode_pack_header(bytes, header)) {
      fail_header(file->path(), bytes, store.checksum_seed(), "the pack's header is corrupted");
    }
    if (header.store_id != store.superblock().store_id) {
      reason = "the pack belongs to another store";
    } else if (header.pack != pack) {
      reason = fmt::format("this is pack {:016x} under another name", header.pack);
    } else if (const char* problem = format::check_sealed(header, store.is_encrypted())) {
      reason = problem;
    } else {
      read_translation(*file, header, store.keys());  // for its checks
      return file->size_bytes();
    }
  } catch (const Error& e) {
    reason = damage_reason(e);
  }
  return std::nullopt;
}

namespace {

const char* check_line(const base::File& file, std::uint64_t pack, const format::IndexLine& line) {
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  if (file.try_pread(bytes, line.offset_bytes) != 0) return "the record cannot be read";
  RecordHeader h;
  if (const char* problem = format::decode_record_header(bytes, h)) return problem;
  const bool same = h.type == line.type && h.pack == pack && h.offset_bytes == line.offset_bytes &&
                    h.stored_bytes == line.stored_bytes && h.raw_bytes == line.raw_bytes &&
                    h.items == line.items && h.tag() == line.tag;
  return same ? nullptr : "the record is not the one that the pack's index names";
}

bool looks_like_trailer(std::span<const std::byte> bytes, std::uint64_t pack) {
  assert(bytes.size() == format::kPackTrailerBytes);
  const auto whole = format::encode_pack_trailer(pack, format::kPackHeaderBytes, 0);
  constexpr std::size_t kMagicBytes = 8, kPackBytes = 8;
  return std::ranges::equal(bytes.first(kMagicBytes), std::span(whole).first(kMagicBytes)) ||
         std::ranges::equal(bytes.subspan(kMagicBytes, kPackBytes),
                            std::span(whole).subspan(kMagicBytes, kPackBytes));
}

}  // namespace

std::vector<PackProblem> check_pack_index(StoreDirectory& store, std::uint64_t pack,
                                          std::uint64_t bytes,
                                          const std::set<std::uint64_t>& needed) {
  const std::string path = store.packs().path_of(pack);
  try {
    const auto file = store.fs().open(path, base::OpenMode::read_only);
    std::array<std::byte, format::kPackTrailerBytes> trailer;
    std::uint64_t offset = 0;
    bool sealed = bytes >= format::kPackHeaderBytes + trailer.size();
    if (sealed) {
      file->pread(trailer, bytes - trailer.size());
      sealed = format::decode_pack_trailer(trailer, pack, store.checksum_seed(), offset);
      if (!sealed && looks_like_trailer(trailer, pack)) {
        return {{path, "the pack's trailer is corrupted"}};
      }
    }
    // A pulled pack has no trailer, nor has the last pack of a killed writer.
    if (!sealed) return {};
    // The trailer has no tag. Hence use the tag in the record's own header.
    std::array<std::byte, format::kRecordHeaderBytes> head;
    file->pread(head, offset);
    RecordHeader h;
    if (const char* problem = format::decode_record_header(head, h)) {
      return {{record_place(store, pack, offset), problem}};
    }
    const auto record = load_record_at(store, {pack, offset, h.tag()}, format::RecordType::index);
    std::vector<format::IndexLine> lines;
    if (!format::decode_index(record.raw, lines)) {
      return {{record_place(store, pack, offset), "the pack's index does not parse"}};
    }
    std::vector<PackProblem> problems;
    for (const auto& line : lines) {
      if (!needed.contains(line.offset_bytes)) continue;
      if (const char* problem = check_line(*file, pack, line)) {
        problems.push_back({record_place(store, pack, line.offset_bytes), problem});
      }
    }
    return problems;
  } catch (const Error& e) {
    return {{path, damage_reason(e)}};
  }
}

}  // namespace vellum::store
