// store/packs/record/record_io.hpp: record reads in normal code, past the record cache.
// They serve run roots, versions, indexes and verification.
//
// A reference says where a record was when it was written. The record's place is where it is now;
// the two differ in a pack that was rewritten (PackSet::locate).
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

// "<pack path> at byte <offset>", of a place.
std::string record_place(PackStore& store, std::uint64_t pack, std::uint64_t offset_bytes);
// The same for the place that a reference leads to, as far as it is known.
std::string record_place(PackStore& store, const format::RecordRef& ref);

// Reads the header of the record that must be at a place, but not its payload.
format::RecordHeader read_record_header(PackStore& store, std::uint64_t pack,
                                        std::uint64_t offset_bytes);

// read_record_at() in a pack, which is opened if need be.
LoadedRecord load_record_at(PackStore& store, const format::RecordRef& place,
                            format::RecordType type);

// The record that a reference leads to.
LoadedRecord load_record(PackStore& store, const format::RecordRef& ref, format::RecordType type);
// The base pages of a record of based pages, and how many bytes their list takes at the start of the
// payload. `ref` leads to it; `place` names it in errors.
std::vector<format::BasePage> base_pages_of(const LoadedRecord& record,
                                            const format::RecordRef& ref, const std::string& place,
                                            std::size_t& list_bytes);
// Records of pages that were loaded last, for a reader of whole packs: base pages lie not far in front
// of their record. Threads: any.
class RecentPages {
 public:
  std::shared_ptr<const LoadedRecord> find(const format::RecordRef& ref) const;
  void note(const format::RecordRef& ref, std::shared_ptr<const LoadedRecord> record);

 private:
  static constexpr std::size_t kMaxBytes = 32u << 20;
  struct Known {
    format::RecordRef ref;
    std::shared_ptr<const LoadedRecord> record;
  };
  mutable std::mutex mutex_;  // of the members below
  std::deque<Known> records_;
  std::size_t raw_bytes_ = 0;
};

// The record of pages, based or not, that a reference leads to. `recent`: may be null.
std::shared_ptr<const LoadedRecord> load_pages(PackStore& store, const format::RecordRef& ref,
                                               RecentPages* recent = nullptr);
// load_record(), but from a cache directory if one has the record. For opening versions only: verify and
// dedup need the content of the pack itself.
LoadedRecord load_cached_record(PackStore& store, const format::RecordRef& ref,
                                format::RecordType type);

}  // namespace vellum::store
