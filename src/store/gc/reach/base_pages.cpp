#include "store/gc/reach/base_pages.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "store/packs/record/pack_extents.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::RecordRef;
using format::RecordType;

namespace {

using Visit = std::function<void(const RecordRef&, std::span<const format::BasePage>)>;

LoadedRecord fetch(PackStore& store, const RecordAtRemote& record) {
  LoadedRecord out;
  out.bytes = store.packs().fetch(record);
  const char* problem = format::decode_record_header(out.bytes, out.header);
  if (problem == nullptr) {
    problem = format::open_record(out.bytes, out.header, record.place, store.record_seal());
  }
  if (problem == nullptr) return out;
  fail(Errc::corrupted, "{}: {}", record_place(store, record.ref), problem);
}

void visit_record(const LoadedRecord& record, const RecordRef& ref, const std::string& place,
                  const Visit& visit) {
  std::size_t list_bytes = 0;
  visit(ref, base_pages_of(record, ref, place, list_bytes));
}

void find_in_remote_pack(PackStore& store, std::span<const RecordRef> records, const Visit& visit) {
  for (const RecordRef& ref : records) {
    const RecordAtRemote record = store.packs().describe(ref.pack, ref.offset_bytes).front();
    if (record.type != RecordType::based_pages) continue;
    visit_record(fetch(store, record), ref, record_place(store, ref), visit);
  }
}

std::uint64_t offset_in_file(PackStore& store, const RecordRef& ref) {
  const RecordPlace place = store.packs().locate(ref);
  if (place.problem != nullptr) {
    fail(Errc::corrupted, "{}: {}", record_place(store, ref), place.problem);
  }
  return place.record.offset_bytes;
}

// Reads the type from the record's header.
void find_by_header(PackStore& store, const RecordRef& ref, const Visit& visit) {
  const auto header = read_record_header(store, ref.pack, offset_in_file(store, ref));
  if (header.type != RecordType::based_pages) return;
  visit_record(load_record(store, ref, RecordType::based_pages), ref, record_place(store, ref),
               visit);
}

struct PlacedRef {
  std::uint64_t offset_bytes;  // in the file
  const RecordRef* ref;
};

// Reads the types from the pack's index; without one, from the records' headers.
void find_in_pack(PackStore& store, std::span<const RecordRef> records, const Visit& visit) {
  assert(!records.empty());
  std::vector<PlacedRef> placed;
  placed.reserve(records.size());
  for (const RecordRef& ref : records) {
    placed.push_back({offset_in_file(store, ref), &ref});
  }
  std::ranges::sort(placed, {}, &PlacedRef::offset_bytes);
  std::vector<std::uint64_t> places;
  places.reserve(placed.size());
  for (const PlacedRef& p : placed) places.push_back(p.offset_bytes);
  const auto lines = record_lines(store, records.front().pack, places);
  assert(lines.size() == placed.size());
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (lines[i].type != RecordType::based_pages) continue;
    const RecordRef& ref = *placed[i].ref;
    visit_record(load_record(store, ref, RecordType::based_pages), ref, record_place(store, ref),
                 visit);
  }
}

}  // namespace

void find_base_pages(PackStore& store, std::span<const RecordRef> records,
                     const BasePagesOptions& options, const Visit& visit) {
  assert(std::ranges::is_sorted(records));
  while (!records.empty()) {
    const std::uint64_t pack = records.front().pack;
    const auto end =
        std::ranges::find_if(records, [&](const RecordRef& r) { return r.pack != pack; });
    const auto own = records.first(static_cast<std::size_t>(end - records.begin()));
    records = records.subspan(own.size());
    try {
      store.packs().open(pack);
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted) throw;
      continue;  // gc frees no part of this pack, and the base pages are in the same pack
    }
    if (store.packs().is_remote(pack)) {
      if (options.fetch) find_in_remote_pack(store, own, visit);
      continue;
    }
    if (!options.skip_corrupted) {
      find_in_pack(store, own, visit);
      continue;
    }
    for (const RecordRef& ref : own) {
      try {
        find_by_header(store, ref, visit);
      } catch (const Error& e) {
        if (e.code() != Errc::corrupted) throw;
      }
    }
  }
}

}  // namespace vellum::store
