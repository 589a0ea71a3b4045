#include "store/check/repair_scan.hpp"

#include <map>

#include "format/records/record.hpp"
#include "format/version.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::RecordHeader;
using format::Version;

std::vector<Version> scan_version_records(StoreDirectory& store) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, Version> found;
  for (const std::uint64_t pack : store.packs().places().list_found()) {
    try {
      // Bypasses the PackSet: a pack with a corrupted header still has records.
      const auto file = store.fs().open(store.packs().path_of(pack), base::OpenMode::read_only);
      PackScanner scanner(*file, pack, store.checksum_seed(), format::kPackHeaderBytes,
                          file->size_bytes());
      for (RecordHeader h; scanner.next(h);) {
        if (h.type != format::RecordType::version) continue;
        const auto record =
            load_record_at(store, {pack, h.offset_bytes, h.tag()}, format::RecordType::version);
        Version v;
        if (format::decode_version(record.raw, v)) found[{v.branch_id, v.sequence}] = std::move(v);
      }
    } catch (const Error& e) {
      if (e.code() == Errc::out_of_memory || e.code() == Errc::newer_format) throw;
      continue;  // a link, a directory, or an unreadable file
    }
  }
  std::vector<Version> out;
  out.reserve(found.size());
  for (auto& [key, version] : found) out.push_back(std::move(version));
  return out;
}

}  // namespace vellum::store
