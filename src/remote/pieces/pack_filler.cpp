#include "remote/pieces/pack_filler.hpp"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "base/bytes/mix64.hpp"
#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "base/try_to.hpp"
#include "remote/pieces/new_pack.hpp"
#include "remote/pieces/version_records.hpp"
#include "store/branch/changed_branch.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/packs/pack_places.hpp"
#include "store/packs/pack_scanner.hpp"
#include "store/packs/record/pack_extents.hpp"

namespace vellum::remote {

using format::RecordRef;

// A pack that gets records.
struct PackFiller::PackInProgress {
  std::uint64_t pack = 0;
  bool existed = false;
  std::string path;
  std::uint64_t limit_bytes = UINT64_MAX;  // a branch's writer may write the bytes after it
  EarlyWriteback writeback;
  std::unique_ptr<base::File> file;            // null if the pack is to be rewritten
  std::vector<store::IndexedExtent> indexed;   // by records of the index, and by the index
  std::vector<PieceRecord> live;               // its records that versions of this store need
  std::map<RecordRef, PieceRecord> written;    // to the file
  std::map<RecordRef, OwnedRecord> rewritten;  // records without a place in the current file
};

std::size_t PackFiller::RefHash::operator()(const RecordRef& ref) const noexcept {
  return static_cast<std::size_t>(base::mix64(ref.pack) ^ base::mix64(ref.offset_bytes + ref.tag));
}

PackFiller::PackFiller(store::StoreDirectory& store) : store_(store) {
  const store::NamesShared names(store);
  roots_ = store::read_roots(store);
  store::LiveSet live_set(store);
  store::reach_roots(store, roots_, live_set);
  note_live(live_set);
  if (store.packs().reaches_remote()) return;
  base::try_to([&] {
    const auto packs = store.packs().list();
    existing_.emplace(packs.begin(), packs.end());
  });
}

PackFiller::~PackFiller() = default;

// Otherwise a new store would look for the file of each record, and in its tiers.
bool PackFiller::may_exist(std::uint64_t pack) const {
  const std::lock_guard lock(mutex_);
  return !existing_.has_value() || existing_->contains(pack);
}

void PackFiller::note_live(const store::LiveSet& live_set) {
  for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    if (!live_set.is_reached(id)) continue;
    const RecordRef& ref = live_set.record(id);
    if (live_.insert(ref).second) live_of_pack_[ref.pack].push_back(ref);
  }
}

// Reads the whole page map, which was fetched with the records.
void PackFiller::require_all(const format::Version& version) {
  store::LiveSet live_set(store_, true);
  live_set.reach(version);
  for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    if (!live_set.is_reached(id)) continue;
    const RecordRef& ref = live_set.record(id);
    const auto slots = live_set.needed_slots(id);
    PieceRecord local;
    if (!find_local_record(store_, ref, local, slots)) {
      fail(Errc::corrupted,
           "pack {:016x} at byte {}: the remote's pieces lack a record of the version", ref.pack,
           ref.offset_bytes);
    }
    if (!has_slots(local, slots)) {
      fail(Errc::corrupted,
           "pack {:016x} at byte {}: the remote's pieces lack pages of the version", ref.pack,
           ref.offset_bytes);
    }
    // A sound header is no proof: gc may have freed the bytes after it.
    const bool is_known = live_.contains(ref) || received_.contains(ref);
    if (!is_known && !store_.packs().is_remote(ref.pack)) read_record_bytes(store_, local);
  }
  note_live(live_set);
}

bool PackFiller::has(const PieceRecord& record) const {
  if (!may_exist(record.ref.pack)) return false;
  PieceRecord local;
  if (!find_local_record(store_, record.ref, local)) return false;
  if (!has_slots_of(local.dropped, record.dropped)) return false;
  if (store_.packs().is_remote(record.ref.pack)) return true;
  if (live_.contains(record.ref)) return true;
  try {  // left by gc or by an interrupted pull
    read_record_bytes(store_, local);
    return true;
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted) throw;
    return false;
  }
}

// Those that versions need now: a writer has appended some since live_ was made. Other threads read
// live_ meanwhile.
std::vector<PieceRecord> PackFiller::live_records(std::uint64_t pack) const {
  const store::NamesShared names(store_);
  store::LiveSet live_set(store_);
  store::reach_roots(store_, store::read_roots(store_), live_set);
  std::vector<PieceRecord> out;
  for (store::LiveSet::RecordId id = 0; id < live_set.size(); ++id) {
    const RecordRef& ref = live_set.record(id);
    PieceRecord local;
    if (ref.pack != pack || !live_set.is_reached(id)) continue;
    if (find_local_record(store_, ref, local)) out.push_back(std::move(local));
  }
  return out;
}

PackFiller::PackInProgress& PackFiller::pack_in_progress(std::uint64_t pack) {
  auto& out = packs_[pack];
  if (out != nullptr) return *out;
  out = std::make_unique<PackInProgress>();
  out->pack = pack;
  out->path = store_.packs().path_of(pack);
  out->limit_bytes = roots_.settled_bytes(pack).value_or(UINT64_MAX);
  if (out->limit_bytes == 0) fail_diverged(out->path, 0);
  out->existed = store_.fs().exists(out->path);
  if (!out->existed && store_.packs().is_remote(pack)) {
    fail(Errc::unsupported,
         "{}: the pack is at the remote that the store was cloned from, and lacks a record: "
         "`vellum pull --packs` fetches the pack",
         out->path);
  }
  if (!out->existed) {
    directories_.insert(base::parent_of(out->path));
    out->file = store_.fs().open(out->path, base::OpenMode::create_new);
    out->file->pwrite(new_pack_header(store_, pack), 0);
    const std::lock_guard lock(mutex_);
    if (existing_.has_value()) existing_->insert(pack);
    return *out;
  }
  try {
    store_.packs().open(pack);
  } catch (const Error& e) {
    // An interrupted pull has left the file without its header.
    if (e.code() != Errc::corrupted || live_of_pack_.contains(pack)) throw;
    out->file = store_.fs().open(out->path, base::OpenMode::read_write);
    out->file->pwrite(new_pack_header(store_, pack), 0);
    return *out;
  }
  for (const RecordRef& ref : live_of_pack_[pack]) {
    PieceRecord local;
    if (find_local_record(store_, ref, local)) out->live.push_back(std::move(local));
  }
  out->indexed = store::indexed_extents(store_, pack);
  if (store_.packs().translation(pack) == nullptr) {
    out->file = store_.fs().open(out->path, base::OpenMode::read_write);
  }
  return *out;
}

// Two pieces may have the record, in the same form or in two.
void PackFiller::add(const PieceRecord& record, std::span<const std::byte> bytes) {
  assert(bytes.size() == record.size_bytes);
  PackInProgress& pack = pack_in_progress(record.ref.pack);
  received_.insert(record.ref);
  if (pack.written.contains(record.ref)) return;
  if (pack.file != nullptr && record.is_original()) {
    write(pack, record, bytes);
    pack.rewritten.erase(record.ref);
  } else {
    add_form(pack, {record, {bytes.begin(), bytes.end()}});
  }
}

// gc may have freed a part of a record that no version needs: then there is no local form.
std::optional<OwnedRecord> PackFiller::local_form(const RecordRef& ref) const {
  OwnedRecord out;
  if (!find_local_record(store_, ref, out.record)) return std::nullopt;
  try {
    out.bytes = read_record_bytes(store_, out.record);
  } catch (const Error& e) {
    if (e.code() != Errc::corrupted || live_.contains(ref)) throw;
    return std::nullopt;
  }
  return out;
}

// Merges the form with those added before and with the local one.
void PackFiller::add_form(PackInProgress& pack, OwnedRecord form) {
  const RecordRef ref = form.record.ref;
  const auto at = pack.rewritten.find(ref);
  if (at != pack.rewritten.end()) {
    at->second = merged_record(store_, std::move(at->second), std::move(form));
    return;
  }
  if (auto local = pack.existed ? local_form(ref) : std::nullopt) {
    form = merged_record(store_, std::move(*local), std::move(form));
  }
  pack.rewritten.emplace(ref, std::move(form));
}

// Whether the place belongs to this record and no other record is or will be there. A place that gc
// has freed is free for its former record, even if the index never named that.
bool PackFiller::is_free(const PackInProgress& pack, const PieceRecord& record) const {
  const std::uint64_t from = record.ref.offset_bytes, to = from + record.size_bytes;
  if (to > pack.limit_bytes) return false;
  if (std::ranges::any_of(pack.live, [&](const PieceRecord& other) {
        return other.place.offset_bytes < to && from < other.place.offset_bytes + other.size_bytes;
      })) {
    return false;
  }
  return std::ranges::none_of(pack.indexed, [&](const store::IndexedExtent& other) {
    const bool is_it = other.at.from == from && other.tag == record.ref.tag;
    return !is_it && other.at.from < to && from < other.at.to;
  });
}

void PackFiller::write(PackInProgress& pack, const PieceRecord& record,
                       std::span<const std::byte> bytes) {
  assert(pack.file != nullptr && record.is_original());
  if (!is_free(pack, record)) fail_diverged(pack.path, record.ref.offset_bytes);
  pack.file->pwrite(bytes, record.ref.offset_bytes);
  pack.written[record.ref] = record;
  pack.writeback.wrote(*pack.file, record.ref.offset_bytes + bytes.size(), bytes.size());
}

// The records that the old file may have, including the copies of versions. A translation lists
// them. Otherwise the file is searched, because an index does not list what gc has left of a pack
// that was sealed later. It is searched to its end: no writer has the pack any more, and a version
// may need each record that one has appended. Those of an interrupted checkpoint do no harm.
// REQUIRES: leave_pack() has returned.
std::set<RecordRef> PackFiller::existing_records(const PackInProgress& pack) const {
  std::set<RecordRef> out;
  for (const PieceRecord& record : pack.live) out.insert(record.ref);
  if (!pack.existed) return out;
  if (const format::Translation* translation = store_.packs().translation(pack.pack)) {
    for (const auto& line : translation->lines) {
      out.insert({pack.pack, line.old_offset_bytes, line.old_tag});
    }
    return out;
  }
  const auto file = store_.fs().open(pack.path, base::OpenMode::read_only);
  store::PackScanner scanner(*file, pack.pack, store_.record_seal(), format::kPackHeaderBytes,
                             file->size_bytes());
  for (format::RecordHeader header; scanner.next(header);) {
    const bool is_metadata = header.type == format::RecordType::index ||
                             header.type == format::RecordType::hashes;  // of the old file
    if (!is_metadata) out.insert({pack.pack, header.offset_bytes, header.tag()});
  }
  if (scanner.has_failed()) fail(Errc::io, "{}: a part of the pack cannot be read", pack.path);
  return out;
}

namespace {

// Whether another record has the offset: the old one is a remnant that no version needs, or the
// stores have diverged.
bool has_another(const std::map<RecordRef, OwnedRecord>& records, const RecordRef& ref) {
  auto at = records.lower_bound({ref.pack, ref.offset_bytes, 0});
  for (; at != records.end() && at->first.offset_bytes == ref.offset_bytes; ++at) {
    if (at->first.tag != ref.tag) return true;
  }
  return false;
}

}  // namespace

// Adds the records of the old file, including those written by this pull. Omits damaged records
// that no version needs: gc may have freed parts of them.
void PackFiller::add_existing_records(PackInProgress& pack) {
  std::map<RecordRef, PieceRecord> kept;
  std::set<RecordRef> needed;
  for (const PieceRecord& record : pack.live) needed.insert(record.ref);
  for (const RecordRef& ref : existing_records(pack)) {
    PieceRecord local;
    if (has_another(pack.rewritten, ref)) {
      if (needed.contains(ref)) fail_diverged(pack.path, ref.offset_bytes);
      continue;
    }
    if (find_local_record(store_, ref, local)) kept[ref] = std::move(local);
  }
  for (const auto& [ref, record] : pack.written) kept[ref] = record;
  // Some records may have been written through another descriptor than that of the set of packs.
  const auto file = store_.fs().open(pack.path, base::OpenMode::read_only);
  for (const auto& [ref, record] : kept) {
    if (pack.rewritten.contains(ref)) continue;  // merged before
    std::vector<std::byte> bytes(static_cast<std::size_t>(record.size_bytes));
    const char* problem = file->try_pread(bytes, record.place.offset_bytes) != 0
                              ? "the record cannot be read"
                              : check_record(record, bytes, store_.record_seal());
    if (problem == nullptr) {
      pack.rewritten.emplace(ref, OwnedRecord{record, std::move(bytes)});
    } else if (needed.contains(ref) || pack.written.contains(ref)) {
      fail(Errc::corrupted, "{} at byte {}: {}", pack.path, record.place.offset_bytes, problem);
    }
  }
}

// As a translated pack that replaces the file.
void PackFiller::rewrite(PackInProgress& pack) {
  assert(!pack.rewritten.empty());
  if (pack.limit_bytes != UINT64_MAX) {
    store::leave_pack(store_, pack.pack);
    pack.live = live_records(pack.pack);
  }
  add_existing_records(pack);
  std::vector<OwnedRecord> records;
  for (auto& [ref, record] : pack.rewritten) records.push_back(std::move(record));
  pack.file.reset();
  write_translated_pack(store_, pack.pack, pack.path, std::move(records));
}

void PackFiller::finish_below(std::uint64_t pack) {
  while (!packs_.empty() && packs_.begin()->first < pack) {
    PackInProgress& first = *packs_.begin()->second;
    if (!first.rewritten.empty()) {
      rewrite(first);
    } else if (first.file != nullptr) {
      first.file->sync_data();
    }
    packs_.erase(packs_.begin());
  }
}

void PackFiller::finish() {
  finish_below(UINT64_MAX);
  for (const std::string& directory : directories_) store_.fs().sync_directory(directory);
}

}  // namespace vellum::remote
