#include "store/record_io.hpp"

#include <algorithm>
#include <array>

#include "base/sha256.hpp"
#include "store/util.hpp"

namespace vellum::store {

std::string record_place(StoreCore& store, std::uint64_t pack, std::uint64_t offset_bytes) {
  const base::File* const file = store.packs().find(pack);
  return fmt::format("{} at byte {}", file != nullptr ? file->path() : store.packs().path_of(pack),
                     offset_bytes);
}

std::string record_place(StoreCore& store, const format::RecordRef& ref) {
  return record_place(store, ref.pack, store.packs().locate(ref).record.offset_bytes);
}

format::RecordHeader read_record_header(StoreCore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes) {
  store.packs().open(pack);
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  store.packs().find(pack)->pread(bytes, offset_bytes);
  format::RecordHeader h;
  const char* problem = format::decode_record_header(bytes, h);
  if (problem == nullptr && (h.pack != pack || h.offset_bytes != offset_bytes)) {
    problem = "misdirected record";
  }
  if (problem != nullptr) {
    fail(Errc::damaged, "{}: {}", record_place(store, pack, offset_bytes), problem);
  }
  return h;
}

LoadedRecord read_record_at(const base::File& file, const format::RecordRef& place,
                            format::RecordType type, std::uint64_t seed) {
  const auto damaged = [&](const char* reason) {
    fail(Errc::damaged, "{} at byte {}: {}", file.path(), place.offset_bytes, reason);
  };

  const std::uint64_t file_bytes = file.size_bytes();
  if (place.offset_bytes > file_bytes ||
      file_bytes - place.offset_bytes < format::kRecordHeaderBytes) {
    damaged("the record lies past the end of the file (truncated)");
  }
  std::array<std::byte, format::kRecordHeaderBytes> header_bytes;
  file.pread(header_bytes, place.offset_bytes);
  LoadedRecord out;
  if (const char* problem = format::decode_record_header(header_bytes, out.header))
    damaged(problem);
  if (out.header.type != type) damaged("the record is of another type");
  const std::uint64_t extent = format::record_extent_bytes(out.header);
  if (extent > file_bytes - place.offset_bytes) {
    damaged("the record ends past the end of the file (truncated)");
  }

  out.bytes.resize(static_cast<std::size_t>(extent));
  file.pread(out.bytes, place.offset_bytes);
  if (const char* problem = format::verify_record(out.bytes, out.header, place, seed)) {
    damaged(problem);
  }
  const auto stored = out.stored();
  out.raw.resize(out.header.raw_bytes);
  if (out.header.codec == base::Codec::none) {
    if (stored.size() != out.raw.size()) damaged("the record's sizes do not match");
    std::copy(stored.begin(), stored.end(), out.raw.begin());
  } else if (!base::Decompressor(out.raw.size()).decompress(out.header.codec, stored, out.raw)) {
    damaged("the record does not decompress");
  }
  if (out.header.has_hash) {
    const auto hash = format::record_hash(out.bytes, out.header);
    if (!std::ranges::equal(base::sha256(out.raw), hash)) {
      damaged("the content does not have the SHA-256 that it was stored with");
    }
  }
  return out;
}

LoadedRecord load_record_at(StoreCore& store, const format::RecordRef& place,
                            format::RecordType type) {
  store.packs().open(place.pack);
  return read_record_at(*store.packs().find(place.pack), place, type, store.checksum_seed());
}

LoadedRecord load_cached_record(StoreCore& store, const format::RecordRef& ref,
                                format::RecordType type) {
  store.packs().open(ref.pack);
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem == nullptr && place.copy != nullptr) {
    try {
      return read_record_at(*place.copy, place.record, type, store.checksum_seed());
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // else: the pack has it
    }
  }
  return load_record(store, ref, type);
}

LoadedRecord load_record(StoreCore& store, const format::RecordRef& ref, format::RecordType type) {
  store.packs().open(ref.pack);
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem != nullptr) {
    fail(Errc::damaged, "{}: {}", record_place(store, ref.pack, ref.offset_bytes), place.problem);
  }
  return read_record_at(*place.file, place.record, type, store.checksum_seed());
}

}  // namespace vellum::store
