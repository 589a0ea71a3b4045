// store/gc/reach/live_set.hpp: the live set, the records that versions need.
//
// On request it also has the needed slots of the records. A version needs the roots and map blocks
// of all its runs, and each record that a shown entry names, with the records of its base pages. A
// record that only hidden entries name is not needed: no reader uses it, and no later version of
// the line can show it again.
//
// The live set reads a run once, however many versions share it. It does not read runs for which
// the census of an earlier gc has the result (store/gc/reach/census_file.hpp).
#pragma once

#include <cassert>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/gc_census.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/slot_uses.hpp"
#include "store/page_map/shown_pages.hpp"

namespace vellum::store {

class LiveSet {
 public:
  using RecordId = std::uint32_t;

  // `slots`: reach() also records the needed slots of records, at the cost of a step per page.
  explicit LiveSet(StoreDirectory& store, bool slots = false) : store_(store), note_slots_(slots) {}
  bool has_slots() const noexcept { return note_slots_; }

  // Lets reach() use an earlier census, except for slots. `packs`: the packs that exist, ascending.
  // Parts that name another pack are ignored. REQUIRES: before any other call.
  void load_earlier(format::GcCensus earlier, std::span<const std::uint64_t> packs);
  // The size of a record in its pack in units of kRecordAlignBytes; 0: unknown. See
  // record_extents().
  std::uint32_t size_lines(RecordId id) const {
    return id < size_lines_.size() ? size_lines_[id] : 0;
  }
  void set_size_lines(RecordId id, std::uint32_t lines);
  // The result of reach(), for the next gc. It depends only on the versions and packs.
  format::GcCensus save() const;
  // Whether reach() used the earlier census, and whether save() differs from it.
  bool has_earlier() const noexcept { return earlier_used_ != 0; }
  bool has_changed() const noexcept { return has_changed_ || earlier_used_ != earlier_.size(); }

  struct Entry {
    format::PageNumber page;
    std::uint32_t count;
    std::uint32_t slot;
    RecordId record;  // kNoRecord for kind zero
    format::PageKind kind;
  };
  struct Run {
    std::vector<RecordId> own;  // its root and blocks
    std::vector<Entry> entries;
    std::vector<std::uint64_t> packs;  // that it names, and its own
  };
  static constexpr RecordId kNoRecord = UINT32_MAX;
  // The contents of a run of the page map; read once. Throws Errc::corrupted.
  const Run& load(const format::RunRef& ref);

  // Marks the records that the version needs as reached. This is cheap if another version that
  // consists of the version's older runs was reached before. Hence start with the oldest version.
  void reach(const format::Version& version);
  // Lets reach() also mark base pages of records in remote packs, and fetch these records for that.
  // REQUIRES: before reach().
  void follow_remote() noexcept {
    assert(parts_.empty());
    follow_remote_ = true;
  }
  // The versions reached after this call may be stale. Records that only they need are not durable,
  // and may be corrupted or missing. REQUIRES: called at most once.
  void begin_stale();

  bool is_reached(RecordId id) const { return id < reached_.size() && reached_[id]; }
  std::size_t size() const noexcept { return records_.size(); }
  const format::RecordRef& record(RecordId id) const {
    assert(id < records_.size());
    return records_[id];
  }
  bool is_durable(RecordId id) const { return id < durable_.size() && durable_[id]; }
  // Slots of a pages or deltas record that a reached version shows. durable_slots(): that a version
  // reached before begin_stale() shows. REQUIRES: has_slots().
  std::vector<format::SlotRange> needed_slots(RecordId id) {
    assert(note_slots_);
    return slots_.of(id);
  }
  std::vector<format::SlotRange> durable_slots(RecordId id) {
    assert(note_slots_);
    return durable_slots_.of(id);
  }
  // The records of the base pages of a record that reach() has read in this live set.
  std::span<const RecordId> bases_of(RecordId id) const {
    const auto at = bases_.find(id);
    return at == bases_.end() ? std::span<const RecordId>() : at->second.records;
  }
  // Packs that the loaded runs name. Opening a version opens them, needed or not.
  const std::set<std::uint64_t>& named_packs() const noexcept { return named_packs_; }

 private:
  // The records that the runs with these roots show, without entries that newer of these runs hide.
  using Roots = std::vector<RecordId>;
  struct ReachedPart {
    std::vector<format::CensusRange> records;
    std::vector<std::uint64_t> packs;
  };
  void read(std::span<const format::RunRef> runs, ReachedPart& part);
  void mark_reached(const ReachedPart& part);
  const ReachedPart& part_of(const Roots& roots, const format::Version& version);
  void note(RecordId id);
  void note_shown(const Entry& e);
  void note_entry(const Entry& e, ShownPages& shown);
  void note_bases();
  void note_bases_of(RecordId id);
  RecordId id_of(const format::RecordRef& ref);

  // The number of a list of roots. A list extends a shorter one by a newer root, and lists share
  // equal older parts. 0: the empty list.
  using ListId = std::uint32_t;
  ListId list_of(ListId older, RecordId root);
  // Of a version: `whole`, the list of all its roots, and `roots`, those of its newest runs, down
  // to the newest run of a version that is already reached. All records that this older version
  // shows are reached, hidden by newer runs or not. Empty `roots`: the whole version is reached.
  struct UnreachedRuns {
    Roots roots;
    ListId whole = 0;
  };
  UnreachedRuns above_reached(const format::Version& version);

  struct RefHash {
    std::size_t operator()(const format::RecordRef& r) const noexcept;
  };
  StoreDirectory& store_;
  const bool note_slots_;
  bool stale_ = false;
  SlotUses slots_, durable_slots_;
  std::map<format::RecordRef, Run> runs_;
  std::unordered_map<format::RecordRef, RecordId, RefHash> ids_;
  std::vector<format::RecordRef> records_;
  std::size_t sorted_records_ = 0;  // those at the front, from the earlier census, not in ids_
  std::vector<std::uint32_t> size_lines_;
  std::vector<bool> reached_, durable_;
  std::vector<RecordId> noted_;  // by read(), for the current part; with repetitions
  // Base pages: their records, and their slots in these.
  struct Bases {
    std::vector<RecordId> records;
    std::vector<std::pair<RecordId, std::uint32_t>> slots;
  };
  std::unordered_map<RecordId, Bases> bases_;
  std::vector<bool> bases_known_;        // whether bases_ has the base pages of a record, if any
  std::vector<RecordId> shown_records_;  // of pages, for the current part; with repetitions
  bool follow_remote_ = false;
  std::set<std::uint64_t> named_packs_;
  std::unordered_map<std::uint64_t, ListId> lists_;  // by the older list and its newer root
  std::vector<bool> reached_lists_{true};
  std::map<Roots, ReachedPart> earlier_, parts_;
  std::size_t earlier_used_ = 0;  // earlier parts in use
  bool has_changed_ = false;
};

}  // namespace vellum::store
