// store/packs/record/record_io.hpp: record reads outside the fault handler, without the record
// cache: run roots, versions, indexes, verification.
//
// A reference has the offset at which a record was written. The record's place has its current
// offset. The two differ in a rewritten pack (PackSet::locate).
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "format/records/based_pages.hpp"
#include "format/records/record.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/packs/record_file.hpp"

namespace vellum::store {

// "<pack path> at byte <offset>", for a place.
std::string record_place(PackStore& store, std::uint64_t pack, std::uint64_t offset_bytes);
// The same for the place of a reference, as far as it is known.
std::string record_place(PackStore& store, const format::RecordRef& ref);

// Reads the header of the record at a place, but not its payload. Errc::corrupted: there is none.
format::RecordHeader read_record_header(PackStore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes);

// read_record_at() in a pack, which is opened if necessary.
LoadedRecord load_record_at(PackStore& store, const format::RecordRef& place,
                            format::RecordType type);

// The record of a reference.
LoadedRecord load_record(PackStore& store, const format::RecordRef& ref, format::RecordType type);
// The base pages of the record of based pages at `ref`, and the bytes that their list takes at the
// start of the payload. `place` is its name in errors.
std::vector<format::BasePage> base_pages_of(const LoadedRecord& record,
                                            const format::RecordRef& ref, const std::string& place,
                                            std::size_t& list_bytes);
// The last loaded records of pages, for a reader of whole packs: base pages are a short distance in
// front of their record. Threads: any.
class RecentPages {
 public:
  std::shared_ptr<const LoadedRecord> find(const format::RecordRef& ref) const;
  void note(const format::RecordRef& ref, std::shared_ptr<const LoadedRecord> record);

 private:
  static constexpr std::size_t kMaxBytes = 32u << 20;
  struct RecentRecord {
    format::RecordRef ref;
    std::shared_ptr<const LoadedRecord> record;
  };
  mutable std::mutex mutex_;  // guards the members below
  std::deque<RecentRecord> records_;
  std::size_t raw_bytes_ = 0;
};

// The record of pages, based or not, of a reference. `recent`: may be null.
std::shared_ptr<const LoadedRecord> load_pages(PackStore& store, const format::RecordRef& ref,
                                               RecentPages* recent = nullptr);
// load_record(), but from a cache directory if one has the record. Only for opening versions:
// verify and dedup need the content of the pack itself.
LoadedRecord load_cached_record(PackStore& store, const format::RecordRef& ref,
                                format::RecordType type);

}  // namespace vellum::store
