#include "store/check/check.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/fail.hpp"
#include "format/signature/hash_tree.hpp"
#include "format/wire/types.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/check/verify_pack.hpp"
#include "store/check/verify_shown.hpp"
#include "store/packs/record/record_io.hpp"
#include "store/page_map/overlay.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

using format::MapEntry;
using format::PageKind;
using format::PageNumber;
using format::RecordRef;
using format::RecordType;

namespace {

constexpr std::size_t kRecordsAtOnce = 64;

struct CheckedVersion {
  std::string label;
  std::string file;  // the ref or journal
  format::Version version;
};

// Damage by object, in the order of its discovery.
class Damages {
 public:
  void add(const std::string& object, const std::string& reason) {
    if (!index_.try_emplace(object, list_.size()).second) return;
    // Errors have the form "<object>: <reason>". Here the object is a field of its own.
    std::string text = reason;
    if (text.starts_with(object + ": ")) text.erase(0, object.size() + 2);
    list_.push_back({object, std::move(text), {}});
  }
  void hurts(const std::string& object, const std::string& version) {
    const auto at = index_.find(object);
    if (at == index_.end()) return;
    auto& versions = list_[at->second].versions;
    // Versions are checked one after the other. A repeated one is therefore the last.
    if (versions.empty() || versions.back() != version) versions.push_back(version);
  }
  std::vector<Damage> take() { return std::move(list_); }

 private:
  std::vector<Damage> list_;
  std::unordered_map<std::string, std::size_t> index_;
};

class Verifier {
 public:
  Verifier(StoreDirectory& store, bool read_data, const ProgressFn& progress)
      : store_(store), read_data_(read_data), progress_(progress) {}

  VerifyReport run() {
    check_superblock();
    check_tiers();
    find_versions();
    check_packs();
    check_maps();
    collect_uses();
    if (read_data_) check_records();
    check_versions();
    if (read_data_) check_sealed_packs();
    report_.versions = versions_.size() + unreadable_versions_;
    report_.damages = damages_.take();
    return std::move(report_);
  }

 private:
  // The use of a record by an entry.
  struct RecordUse {
    RecordRef record;
    PageNumber page;
    std::uint32_t slot, count;
    PageKind kind;
  };

  void check_superblock();
  void check_tiers();
  void find_versions();
  void check_packs();
  void check_maps();
  std::vector<const format::Version*> listed_versions() const;
  void check_run(const format::RunRef& ref, CheckedRun& run);
  void check_block(const format::RunRef& ref, const format::MapBlockRef& block, CheckedRun& run);
  void collect_uses();
  void check_records();
  void check_versions();
  void check_version(const CheckedVersion& v);
  ShownProblem check_part(const ShownPart& part) const;
  void report_shown(const CheckedVersion& v, const std::vector<ShownProblem>& problems);
  void check_sealed_packs();
  std::optional<std::string> check_record(std::span<const RecordUse> uses);
  void report_progress(std::uint64_t done, std::uint64_t total, const char* unit) {
    assert(done <= total);
    if (progress_) progress_({done, total, unit});
  }
  std::string why_unusable(std::uint64_t pack) const {
    const auto bad = bad_packs_.find(pack);
    if (bad != bad_packs_.end()) return bad->second;
    if (absent_archives_.empty()) return "the pack is missing";
    return "the pack is not in the store, and archive " + absent_archives_ + " is missing";
  }
  // The record's place in its pack's file, and its freed slots. A record in a remote pack is
  // checked only if its data are to be read.
  RecordPlace place_in_file(const RecordRef& ref) const {
    if (!store_.packs().is_remote(ref.pack)) return store_.packs().locate(ref);
    RecordPlace out;
    out.record = ref;
    return out;
  }
  // The number of the slots that were freed, and the first of them. collect_uses() has checked that
  // the record exists. A remote may have the record in several forms. Slots that all of them lack
  // are freed.
  std::uint64_t freed_pages(const RecordRef& ref, std::uint32_t slot, std::uint64_t count,
                            std::uint64_t& first) const {
    std::vector<std::vector<format::SlotRange>> forms;
    if (store_.packs().is_remote(ref.pack)) {
      if (!read_data_) return 0;
      try {
        for (const auto& form : store_.packs().describe(ref.pack, ref.offset_bytes)) {
          forms.push_back(form.dropped);
        }
      } catch (const Error& e) {
        if (e.code() != Errc::corrupted) throw;
      }
    } else {
      const auto dropped = store_.packs().locate(ref).dropped;
      forms.emplace_back(dropped.begin(), dropped.end());
    }
    if (std::ranges::any_of(forms, &std::vector<format::SlotRange>::empty)) return 0;
    std::uint64_t freed = 0;
    for (std::uint32_t i = 0; !forms.empty() && i < count; ++i) {
      if (!std::ranges::all_of(
              forms, [&](const auto& f) { return format::any_dropped(f, slot + i, 1); })) {
        continue;
      }
      if (freed++ == 0) first = i;
    }
    return freed;
  }
  // Whether a local pack lacks slots of records.
  bool lacks_slots() const {
    return std::ranges::any_of(pack_bytes_, [&](const auto& pack) {
      const format::Translation* table = store_.packs().translation(pack.first);
      return table != nullptr && !table->dropped.empty();
    });
  }
  // An outage is no damage: the remote pack may be intact.
  std::string reason_of(const Error& e, std::uint64_t pack) const {
    if (e.code() == Errc::io && store_.packs().is_remote(pack)) throw;
    return damage_reason(e);
  }
  // A version may name a pack that cannot be opened. The place is then the reference's.
  std::string place_of(const RecordRef& ref) {
    if (pack_bytes_.contains(ref.pack)) {
      try {
        store_.packs().open(ref.pack);
      } catch (const Error& e) {
        if (e.code() == Errc::out_of_memory) throw;
        // The reader of the record reports it.
      }
    }
    return record_place(store_, ref);
  }
  void count_record(const format::RecordHeader& h) {
    ++report_.records;
    report_.bytes_read += format::record_extent_bytes(h);
  }

  StoreDirectory& store_;
  bool read_data_;
  const ProgressFn& progress_;
  VerifyReport report_;
  Damages damages_;
  std::vector<CheckedVersion> versions_;
  std::uint64_t unreadable_versions_ = 0;
  std::string absent_archives_;
  std::map<std::uint64_t, std::uint64_t> pack_bytes_;  // sizes of good packs
  std::map<std::uint64_t, std::string> bad_packs_;     // the other packs, with reasons
  CheckedRuns runs_;
  std::vector<RecordUse> uses_;  // sorted by record
  RecentPages recent_;
  std::map<RecordRef, std::string> bad_records_;         // with the objects in their reports
  std::map<std::uint64_t, std::uint64_t> active_packs_;  // by branch id
};

void Verifier::check_superblock() {
  const std::string file = store_.path() + "/vellum.store";
  try {
    const auto bytes = base::read_whole(store_.fs(), file, 64u << 10);
    format::Superblock sb;
    if (format::decode_superblock(bytes, sb) != format::SuperblockStatus::ok ||
        sb != store_.superblock()) {
      damages_.add(file, "the superblock is corrupted");
    }
  } catch (const Error& e) {
    damages_.add(file, damage_reason(e));
  }
}

void Verifier::check_tiers() {
  const auto tiers = store_.packs().places().reload();
  if (tiers->code == Errc::newer_format) fail(tiers->code, "{}", tiers->problem);
  if (!tiers->problem.empty()) damages_.add(store_.path() + "/" + kTiersName, tiers->problem);
  for (const std::string& directory : tiers->missing_archives()) {
    damages_.add(directory, "the archive is missing or belongs to another store");
    absent_archives_ += (absent_archives_.empty() ? "" : ", ") + directory;
  }
}

void Verifier::find_versions() {
  for (const auto& name : snapshot_names(store_)) {
    const std::string label = "snapshot '" + name + "'";
    const std::string file = store_.snapshots_directory() + "/" + name + ".ref";
    try {
      versions_.push_back({label, file, read_snapshot(store_, name).version});
    } catch (const Error& e) {
      if (e.code() == Errc::not_found && !has_snapshot(store_, name)) continue;  // removed just now
      damages_.add(file, damage_reason(e));
      damages_.hurts(file, label);
      ++unreadable_versions_;
    }
  }
  for (const auto& name : store_.branch_names()) {
    const std::string label = "branch '" + name + "'";
    const std::string file = store_.journal_path(name);
    try {
      BranchHead head = store_.read_branch(name);
      active_packs_[head.journal.header.branch_id] = head.journal.base.active_pack;
      versions_.push_back({label, file, head.journal.base});
      check_raw_bytes(head.journal.commits, store_.superblock().journal_half_bytes);
      Overlay(std::move(head.journal.commits));  // parses every part
    } catch (const Error& e) {
      if (e.code() == Errc::not_found && !has_branch(store_, name)) continue;  // removed just now
      damages_.add(file, damage_reason(e));
      damages_.hurts(file, label);
      if (versions_.empty() || versions_.back().label != label) ++unreadable_versions_;
    }
  }
}

void Verifier::check_packs() {
  for (const std::uint64_t pack : store_.packs().list_remote()) {
    ++report_.packs;
    pack_bytes_[pack] = format::kMaxPackOffsetBytes;
  }
  const auto packs = store_.packs().places().list_found();
  std::uint64_t done = 0;
  for (const std::uint64_t pack : packs) {
    ++report_.packs;
    std::string reason;
    const auto bytes = check_pack_header(store_, pack, reason);
    if (bytes.has_value()) {
      pack_bytes_[pack] = *bytes;
    } else {
      // Damage only if a version needs it: a crash can leave a file to which nothing refers.
      bad_packs_[pack] = reason;
    }
    report_progress(++done, packs.size(), "packs");
  }
}

void Verifier::check_maps() {
  std::uint64_t done = 0;
  for (const CheckedVersion& v : versions_) {
    for (const auto& ref : v.version.runs) {
      const auto [at, fresh] = runs_.try_emplace(ref.root);
      if (fresh) check_run(ref, at->second);
    }
    report_progress(++done, versions_.size(), "versions");
  }
  find_shown(listed_versions(), runs_);
}

std::vector<const format::Version*> Verifier::listed_versions() const {
  std::vector<const format::Version*> out;
  out.reserve(versions_.size());
  for (const CheckedVersion& v : versions_) out.push_back(&v.version);
  return out;
}

void Verifier::check_run(const format::RunRef& ref, CheckedRun& run) {
  const auto corrupted = [&](const std::string& object, const std::string& reason) {
    damages_.add(object, reason);
    run.corrupted.insert(object);
  };
  const std::string place = place_of(ref.root);
  format::RunRoot root;
  run.packs = {ref.root.pack};
  run.own = {ref.root};
  try {
    if (!pack_bytes_.contains(ref.root.pack)) {
      return corrupted(store_.packs().path_of(ref.root.pack), why_unusable(ref.root.pack));
    }
    const LoadedRecord record = load_record(store_, ref.root, RecordType::run_root);
    count_record(record.header);
    std::uint64_t entries = 0;
    const bool good =
        format::decode_run_root(record.raw, root) && root.blocks.size() == record.header.items;
    for (const auto& block : root.blocks) entries += block.entries;
    if (!good || entries != ref.entries)
      return corrupted(place, "the root of a run does not parse");
  } catch (const Error& e) {
    return corrupted(place, reason_of(e, ref.root.pack));
  }
  run.packs.insert(run.packs.end(), root.packs.begin(), root.packs.end());
  for (const std::uint64_t pack : root.packs) {
    if (!pack_bytes_.contains(pack)) {
      corrupted(store_.packs().path_of(pack), why_unusable(pack));
      continue;
    }
    try {
      store_.packs().open(pack);
    } catch (const Error& e) {
      corrupted(store_.packs().path_of(pack), damage_reason(e));
    }
  }
  for (const auto& block : root.blocks) {
    run.own.push_back({ref.root.pack, block.offset_bytes, block.tag});
    check_block(ref, block, run);
  }
}

void Verifier::check_block(const format::RunRef& ref, const format::MapBlockRef& block,
                           CheckedRun& run) {
  const std::string place = place_of({ref.root.pack, block.offset_bytes, block.tag});
  std::vector<MapEntry> entries(format::kMaxEntriesPerMapBlock);
  std::string reason;
  try {
    const LoadedRecord record =
        load_record(store_, {ref.root.pack, block.offset_bytes, block.tag}, RecordType::map_block);
    count_record(record.header);
    const int n = format::decode_map_block(record.raw, entries);
    entries.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    if (n < 0 || static_cast<std::uint32_t>(n) != record.header.items) {
      reason = "the map block does not parse";
    } else if (!format::is_described(entries, block)) {
      reason = "the map block is not the one that its root describes";
    }
    for (const MapEntry& e : entries) {
      if (e.kind == PageKind::zero) continue;
      if (e.record.pack != run.packs[0] &&
          !std::binary_search(run.packs.begin() + 1, run.packs.end(), e.record.pack)) {
        reason = "the map block names a pack that its root does not";
      }
    }
  } catch (const Error& e) {
    reason = reason_of(e, ref.root.pack);
  }
  if (!reason.empty()) {
    damages_.add(place, reason);
    run.corrupted.insert(place);
    return;
  }
  for (const MapEntry& e : entries) {
    if (e.page < format::kFirstTreePage) run.end = std::max(run.end, e.page + e.count);
  }
  run.entries.insert(run.entries.end(), entries.begin(), entries.end());
}

// Collects the records that shown entries refer to, and the entries' expectations. Records outside
// their packs are bad without being read.
void Verifier::collect_uses() {
  for (const auto& [root, run] : runs_) {
    assert(run.shown.size() == run.entries.size());
    for (std::size_t i = 0; i < run.entries.size(); ++i) {
      const MapEntry& e = run.entries[i];
      if (!run.shown[i] || e.kind == PageKind::zero || !pack_bytes_.contains(e.record.pack))
        continue;
      uses_.push_back({e.record, e.page, e.slot, e.count, e.kind});
    }
  }
  std::sort(uses_.begin(), uses_.end(), [](const RecordUse& a, const RecordUse& b) {
    return std::tie(a.record, a.slot, a.page) < std::tie(b.record, b.slot, b.page);
  });
  uses_.erase(std::unique(uses_.begin(), uses_.end(),
                          [](const RecordUse& a, const RecordUse& b) {
                            return a.record == b.record && a.slot == b.slot && a.page == b.page &&
                                   a.count == b.count && a.kind == b.kind;
                          }),
              uses_.end());
  for (const RecordUse& u : uses_) {
    const RecordPlace at = place_in_file(u.record);
    const std::uint64_t end = at.record.offset_bytes + format::kRecordHeaderBytes;
    const bool outside = end > pack_bytes_.at(u.record.pack);
    if (at.problem == nullptr && !outside) continue;
    const std::string place = place_of(u.record);
    damages_.add(place, at.problem != nullptr
                            ? at.problem
                            : "the record is past the end of the file (truncated)");
    bad_records_[u.record] = place;
  }
}

// Checks one record against all its entries. nullopt: it is good. REQUIRES: `uses` are of one
// record.
std::optional<std::string> Verifier::check_record(std::span<const RecordUse> uses) {
  assert(!uses.empty() && uses.front().record == uses.back().record);
  const bool pages = uses[0].kind == PageKind::base;
  std::shared_ptr<const LoadedRecord> loaded;
  try {
    loaded = pages ? load_pages(store_, uses[0].record, &recent_)
                   : std::make_shared<const LoadedRecord>(
                         load_record(store_, uses[0].record, RecordType::deltas));
  } catch (const Error& e) {
    return reason_of(e, uses[0].record.pack);
  }
  const LoadedRecord& record = *loaded;
  {
    static std::mutex mutex;  // of the counters
    const std::lock_guard guard(mutex);
    count_record(record.header);
  }
  if (record.header.raw_bytes > max_data_raw_bytes(store_.superblock(), record.header.type)) {
    return "the record is larger than the store's blocks";
  }
  std::vector<format::DeltaIndexLine> lines;
  if (!pages) {
    lines.resize(format::kMaxDeltasPerBatch);
    const int n = format::index_delta_batch(record.raw, lines);
    if (n < 0 || static_cast<std::uint32_t>(n) != record.header.items) {
      return "the deltas do not parse";
    }
    lines.resize(static_cast<std::size_t>(n));
  }
  for (const RecordUse& u : uses) {
    if ((u.kind == PageKind::base) != pages) return "entries disagree about the record's type";
    if (std::uint64_t{u.slot} + u.count > record.header.items) {
      return fmt::format("page {}: the record has no such slot", u.page);
    }
    if (!pages && lines[u.slot].page != u.page) {
      return fmt::format("page {}: the delta belongs to another page", u.page);
    }
  }
  return std::nullopt;
}

void Verifier::check_records() {
  std::vector<std::span<const RecordUse>> records;
  for (std::size_t i = 0; i < uses_.size();) {
    std::size_t end = i;
    while (end < uses_.size() && uses_[end].record == uses_[i].record) ++end;
    if (!bad_records_.contains(uses_[i].record)) {
      records.push_back(std::span(uses_).subspan(i, end - i));
    }
    i = end;
  }
  std::vector<std::optional<std::string>> problems(kRecordsAtOnce);
  for (std::size_t first = 0; first < records.size(); first += kRecordsAtOnce) {
    const std::size_t count = std::min(kRecordsAtOnce, records.size() - first);
    store_.pool().parallel_for(
        count, [&](std::size_t i, std::size_t) { problems[i] = check_record(records[first + i]); });
    for (std::size_t i = 0; i < count; ++i) {
      if (!problems[i].has_value()) continue;
      const RecordRef& ref = records[first + i][0].record;
      const std::string place = place_of(ref);
      damages_.add(place, *problems[i]);
      bad_records_[ref] = place;
    }
    report_progress(first + count, records.size(), "records");
  }
}

void Verifier::check_versions() {
  std::vector<std::vector<ShownProblem>> problems(versions_.size());
  if (read_data_ || !bad_records_.empty() || lacks_slots()) {
    problems = find_shown_problems(listed_versions(), runs_,
                                   [this](const ShownPart& part) { return check_part(part); });
  }
  assert(problems.size() == versions_.size());
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    check_version(versions_[i]);
    report_shown(versions_[i], problems[i]);
  }
}

void Verifier::check_version(const CheckedVersion& v) {
  const auto corrupted = [&](const std::string& object, const std::string& reason) {
    damages_.add(object, reason);
    damages_.hurts(object, v.label);
  };
  for (const auto& ref : v.version.runs) {
    const CheckedRun& run = runs_.at(ref.root);
    for (const std::string& object : run.corrupted) damages_.hurts(object, v.label);
    for (const std::uint64_t pack : run.packs) {
      if (!pack_bytes_.contains(pack)) damages_.hurts(store_.packs().path_of(pack), v.label);
    }
    // Later commits may have grown the region further.
    if (run.end > format::pages_in(v.version.region_bytes)) {
      corrupted(v.file, fmt::format("page {} is outside the region", run.end - 1));
    }
  }
  const bool branch = v.label.starts_with("branch");
  const std::uint64_t active = v.version.active_pack;
  if (!branch || active == 0) return;
  const std::string path = store_.packs().path_of(active);
  const auto bytes = pack_bytes_.find(active);
  if (bytes == pack_bytes_.end()) {
    corrupted(path, why_unusable(active));
  } else if (bytes->second < v.version.active_pack_end_bytes) {
    corrupted(path, fmt::format("truncated: {} bytes, the branch needs {}", bytes->second,
                                v.version.active_pack_end_bytes));
  }
}

ShownProblem Verifier::check_part(const ShownPart& part) const {
  const MapEntry& e = part.entry;
  assert(part.first >= e.page && part.first + part.count <= e.page + e.count);
  if (e.kind == PageKind::zero) return {};
  using enum ShownProblemKind;
  if (bad_records_.contains(e.record)) return {record, part.count, part.first, "", nullptr};
  const auto slot = e.slot + static_cast<std::uint32_t>(part.first - e.page);
  std::uint64_t first = 0;
  const std::uint64_t pages = freed_pages(e.record, slot, part.count, first);
  if (pages != 0) return {freed, pages, part.first + first, "", nullptr};
  if (e.kind != PageKind::delta) return {};
  // Below a delta is the rest of its chain, or nothing, which stands for zero.
  const int below = part.below != nullptr ? part.below->depth : 0;
  if (e.depth != below + 1) return {chain, 1, e.page, "broken", nullptr};
  if (e.depth > kMaxChainDeltas) return {chain, 1, e.page, "too long", nullptr};
  return {};
}

void Verifier::report_shown(const CheckedVersion& v, const std::vector<ShownProblem>& problems) {
  for (const auto& ref : v.version.runs) {
    if (!runs_.at(ref.root).corrupted.empty())
      return;  // reported already; the rest would be a guess
  }
  for (const ShownProblem& p : problems) {
    std::string object = v.file;
    assert(p.kind != ShownProblemKind::none && p.entry != nullptr);
    if (p.kind == ShownProblemKind::record) {
      object = bad_records_.at(p.entry->record);
    } else if (p.kind == ShownProblemKind::freed) {
      object = place_of(p.entry->record);
      damages_.add(object, fmt::format("page {} was freed", p.page));
    } else {
      damages_.add(object, fmt::format("page {}: the delta chain is {}", p.page, p.reason));
    }
    damages_.hurts(object, v.label);
  }
}

// Skips packs that no version names and the pack that a branch still writes: they may contain
// remains of a crash.
void Verifier::check_sealed_packs() {
  std::set<std::uint64_t> named;
  std::map<std::uint64_t, std::set<std::uint64_t>> needed;  // places of records
  const auto need = [&](const RecordRef& ref) {
    if (store_.packs().is_remote(ref.pack)) return;
    needed[ref.pack].insert(store_.packs().locate(ref).record.offset_bytes);
  };
  for (const auto& [root, run] : runs_) {
    named.insert(run.packs.begin(), run.packs.end());
    for (const RecordRef& ref : run.own) need(ref);
  }
  for (const RecordUse& u : uses_) need(u.record);
  std::map<std::uint64_t, std::uint64_t> newest = active_packs_;
  for (const std::uint64_t pack : named) {
    std::uint64_t& last = newest[pack >> 32];
    last = std::max(last, pack);
  }
  for (const std::uint64_t pack : named) {
    const auto bytes = pack_bytes_.find(pack);
    if (bytes == pack_bytes_.end() || newest.at(pack >> 32) == pack) continue;
    if (store_.packs().is_remote(pack)) continue;
    for (const PackProblem& p : check_pack_index(store_, pack, bytes->second, needed[pack])) {
      damages_.add(p.object, p.reason);
    }
  }
}

}  // namespace

VerifyReport verify_store(StoreDirectory& store, bool read_data, const ProgressFn& progress) {
  const NamesShared names(store);  // data that gc frees meanwhile would look like damage
  try {
    store.packs().refresh();
  } catch (const Error& e) {
    if (e.code() == Errc::out_of_memory) throw;
    // check_packs() reads every pack's header and translation again and reports the error.
  }
  return Verifier(store, read_data, progress).run();
}

}  // namespace vellum::store
