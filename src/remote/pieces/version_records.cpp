#include "remote/pieces/version_records.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/fail.hpp"
#include "format/wire/checks.hpp"
#include "remote/pieces/merged_record.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/gc/reach/slot_uses.hpp"
#include "store/packs/record/pack_extents.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::remote {
namespace {

using format::RecordRef;

// Type and size from the header at the record's place.
const char* read_header(const base::File& file, PieceRecord& record) {
  std::array<std::byte, format::kRecordHeaderBytes> bytes;
  if (file.try_pread(bytes, record.place.offset_bytes) != 0) return "truncated";
  format::RecordHeader header;
  if (const char* problem = format::decode_record_header(bytes, header)) return problem;
  if (header.tag() != record.place.tag) return "stale record";
  record.type = header.type;
  record.size_bytes = format::record_extent_bytes(header);
  return nullptr;
}

PieceRecord piece_record(const store::RecordAtRemote& there) {
  return {there.type, there.ref, there.size_bytes, there.place, there.dropped};
}

OwnedRecord fetch_form(store::StoreDirectory& store, const PieceRecord& form) {
  OwnedRecord out{
      form, store.packs().fetch({form.type, form.ref, form.place, form.size_bytes, form.dropped})};
  if (const char* problem = check_record(form, out.bytes, store.record_seal())) {
    fail(Errc::corrupted, "{}: {}", store::record_place(store, form.ref), problem);
  }
  return out;
}

// All forms of a remote record, merged.
OwnedRecord merged_forms(store::StoreDirectory& store, const RecordRef& ref) {
  OwnedRecord out;
  for (const auto& there : store.packs().describe(ref.pack, ref.offset_bytes)) {
    if (there.ref != ref) continue;
    OwnedRecord form = fetch_form(store, piece_record(there));
    out =
        out.bytes.empty() ? std::move(form) : merged_record(store, std::move(out), std::move(form));
  }
  return out;
}

// The form with the most slots, if it has the slots; otherwise all forms merged.
const char* locate_remote(store::StoreDirectory& store, const RecordRef& ref,
                          std::span<const format::SlotRange> slots, PieceRecord& out) {
  bool is_there = false;
  for (const auto& there : store.packs().describe(ref.pack, ref.offset_bytes)) {
    if (there.ref != ref) continue;
    if (!is_there) out = piece_record(there);
    is_there = true;
    if (!has_slots(piece_record(there), slots)) continue;
    out = piece_record(there);
    return nullptr;
  }
  if (!is_there) return "stale record";
  out = merged_forms(store, ref).record;
  return nullptr;
}

// nullptr, or a description of the error.
const char* locate(store::StoreDirectory& store, const RecordRef& ref,
                   std::span<const format::SlotRange> slots, PieceRecord& out) {
  store.packs().open(ref.pack);
  if (store.packs().is_remote(ref.pack)) return locate_remote(store, ref, slots, out);
  const store::RecordPlace place = store.packs().locate(ref);
  if (place.problem != nullptr) return place.problem;
  out.ref = ref;
  out.place = place.record;
  out.dropped.assign(place.dropped.begin(), place.dropped.end());
  return read_header(*place.file, out);
}

// The reference of the record at a place. (No version refers to the copy of a version.)
RecordRef reference_to(store::StoreDirectory& store, const RecordRef& place) {
  const format::Translation* translation = store.packs().translation(place.pack);
  if (translation == nullptr) return place;
  const format::TranslationLine* line = translation->find_new(place.offset_bytes);
  if (line == nullptr) {
    fail(Errc::corrupted, "{}: the pack's translation lacks the record",
         store::record_place(store, place.pack, place.offset_bytes));
  }
  return {place.pack, line->old_offset_bytes, line->old_tag};
}

void add_record(store::StoreDirectory& store, const RecordRef& ref,
                std::span<const format::SlotRange> slots, std::vector<PieceRecord>& out) {
  PieceRecord& record = out.emplace_back();
  const char* problem = locate(store, ref, slots, record);
  if (problem == nullptr && !has_slots(record, slots)) problem = "gc has freed pages of it";
  if (problem != nullptr) {
    fail(Errc::corrupted, "{}: {}", store::record_place(store, ref), problem);
  }
}

// The copy of the version that follows the root. If the pack is remote, the copy may be missing.
void add_copy(store::StoreDirectory& store, const RecordRef& root, std::vector<PieceRecord>& out) {
  if (store.packs().is_remote(root.pack)) {
    const auto there = store.packs().describe(root.pack, root.offset_bytes).front();
    try {
      const auto copy =
          store.packs().describe(root.pack, root.offset_bytes + there.size_bytes).front();
      if (copy.type == format::RecordType::version) out.push_back(piece_record(copy));
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted) throw;
    }
    return;
  }
  const store::Extent copy = store::version_copy_extent(store, root.pack, root.offset_bytes);
  if (copy.to == 0) return;
  const auto header = store::read_record_header(store, root.pack, copy.from);
  add_record(store, reference_to(store, {root.pack, copy.from, header.tag()}), {}, out);
}

}  // namespace

std::vector<PieceRecord> records_of_version(store::StoreDirectory& store,
                                            const format::Version& version) {
  std::vector<PieceRecord> out;
  if (version.runs.empty()) return out;
  store.packs().learn(version);
  store::LiveSet live_set(store, true);
  live_set.follow_remote();
  live_set.reach(version);
  out.reserve(live_set.size() + 1);
  for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    if (!live_set.is_reached(id)) continue;
    add_record(store, live_set.record(id), live_set.needed_slots(id), out);
  }
  add_copy(store, version.runs.front().root, out);
  std::sort(out.begin(), out.end(),
            [](const PieceRecord& a, const PieceRecord& b) { return a.ref < b.ref; });
  return out;
}

std::vector<PieceRecord> slots_of_version(store::StoreDirectory& store,
                                          const format::Version& version) {
  std::vector<PieceRecord> out;
  store.packs().learn(version);
  store::LiveSet live_set(store, true);
  live_set.follow_remote();
  live_set.reach(version);
  for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    if (!live_set.is_reached(id)) continue;
    PieceRecord& record = out.emplace_back();
    record.ref = live_set.record(id);
    record.dropped =
        store::slots_outside(live_set.needed_slots(id), format::kMaxSlotsPerPagesRecord);
  }
  return out;
}

std::vector<std::byte> read_record_bytes(store::StoreDirectory& store, const PieceRecord& record) {
  assert(record.size_bytes != 0);
  if (store.packs().is_remote(record.ref.pack)) {
    const auto forms = store.packs().describe(record.ref.pack, record.ref.offset_bytes);
    if (std::ranges::find(forms, record.place, &store::RecordAtRemote::place) != forms.end()) {
      return fetch_form(store, record).bytes;
    }
    OwnedRecord merged = merged_forms(store, record.ref);
    if (merged.record == record) return std::move(merged.bytes);
    fail(Errc::corrupted, "{}: the forms of the record have changed",
         store::record_place(store, record.ref));
  }
  const store::RecordPlace place = store.packs().locate(record.ref);
  if (place.problem != nullptr || place.record != record.place) {
    fail(Errc::corrupted, "{}: {}", store::record_place(store, record.ref),
         place.problem != nullptr ? place.problem : "the record has moved");
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(record.size_bytes));
  place.file->pread(bytes, record.place.offset_bytes);
  if (const char* problem = check_record(record, bytes, store.record_seal())) {
    fail(Errc::corrupted, "{} at byte {}: {}", place.file->path(), record.place.offset_bytes,
         problem);
  }
  return bytes;
}

bool has_slots(const PieceRecord& record, std::span<const format::SlotRange> slots) {
  return std::ranges::none_of(slots, [&](const format::SlotRange& range) {
    return format::any_dropped(record.dropped, range.first, range.count);
  });
}

bool find_local_record(store::StoreDirectory& store, const RecordRef& ref, PieceRecord& out,
                       std::span<const format::SlotRange> slots) {
  try {
    return locate(store, ref, slots, out) == nullptr;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted && e.code() != Errc::not_found) throw;
    return false;
  }
}

}  // namespace vellum::remote
