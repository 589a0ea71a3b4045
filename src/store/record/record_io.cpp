#include "store/record/record_io.hpp"

#include <array>

#include "base/fail.hpp"

namespace vellum::store {

std::string record_place(PackStore& store, std::uint64_t pack, std::uint64_t offset_bytes) {
  const base::File* const file = store.packs().find(pack);
  return fmt::format("{} at byte {}", file != nullptr ? file->path() : store.packs().path_of(pack),
                     offset_bytes);
}

std::string record_place(PackStore& store, const format::RecordRef& ref) {
  return record_place(store, ref.pack, store.packs().locate(ref).record.offset_bytes);
}

format::RecordHeader read_record_header(PackStore& store, std::uint64_t pack,
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
    fail(Errc::corrupted, "{}: {}", record_place(store, pack, offset_bytes), problem);
  }
  return h;
}

LoadedRecord load_record_at(PackStore& store, const format::RecordRef& place,
                            format::RecordType type) {
  store.packs().open(place.pack);
  return read_record_at(*store.packs().find(place.pack), place, type, store.checksum_seed());
}

LoadedRecord load_cached_record(PackStore& store, const format::RecordRef& ref,
                                format::RecordType type) {
  store.packs().open(ref.pack);
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem == nullptr && place.copy != nullptr) {
    try {
      return read_record_at(*place.copy, place.record, type, store.checksum_seed());
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory) throw;  // otherwise the pack has it
    }
  }
  return load_record(store, ref, type);
}

LoadedRecord load_record(PackStore& store, const format::RecordRef& ref, format::RecordType type) {
  store.packs().open(ref.pack);
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem != nullptr) {
    const std::string name = place.file != nullptr
                                 ? place.file->path()
                                 : record_place(store, ref.pack, ref.offset_bytes);
    fail(place.os_errno != 0 ? Errc::io : Errc::corrupted, "{}: {}", name, place.problem);
  }
  return read_record_at(*place.file, place.record, type, store.checksum_seed());
}

}  // namespace vellum::store
