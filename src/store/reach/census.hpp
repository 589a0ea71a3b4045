// store/reach/census.hpp: which records versions need, and on request which slots of them.
//
// A version needs the roots and map blocks of all of its runs, and each record of which an entry
// shows. A record that only hidden entries name is not needed: nobody reads it, and no later
// version of the line can bring it back.
//
// A run is read once, however many versions share it; and not at all where an earlier census is
// there to say what it would give (store/reach/census_file.hpp).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/saved_census.hpp"
#include "store/catalog/store_core.hpp"
#include "store/page_map/shown_pages.hpp"
#include "store/reach/slot_uses.hpp"

namespace vellum::store {

class Census {
 public:
  using RecordId = std::uint32_t;

  // `slots`: mark() also notes which slots of records are needed, at the cost of a step a page.
  explicit Census(StoreCore& store, bool slots = false) : store_(store), note_slots_(slots) {}

  // Lets mark() take from an earlier census what it says, but for slots. `packs`: those that are
  // there, ascending; what names another is not taken. REQUIRES: nothing was marked or loaded.
  void believe(format::SavedCensus earlier, std::span<const std::uint64_t> packs);
  // What a record takes in its pack, if that is known; see record_extents().
  std::uint32_t lines(RecordId id) const { return id < lines_.size() ? lines_[id] : 0; }
  void set_lines(RecordId id, std::uint32_t lines);
  // What mark() has found, for the next census: the same for the same versions and packs.
  format::SavedCensus save() const;
  // Whether mark() took something that it was to believe, and whether save() differs from all that.
  bool has_believed() const noexcept { return believed_ != 0; }
  bool has_news() const noexcept { return has_news_ || believed_ != earlier_.size(); }

  struct Entry {
    format::PageNumber page;
    std::uint32_t count;
    std::uint32_t slot;
    RecordId record;  // of kind zero: none
    format::PageKind kind;
  };
  struct Run {
    std::vector<RecordId> own;  // its root and its blocks
    std::vector<Entry> entries;
    std::vector<std::uint64_t> packs;  // that it names, its own among them
  };
  static constexpr RecordId kNoRecord = UINT32_MAX;
  // What a run of the page map says; read once. Throws Errc::damaged.
  const Run& load(const format::RunRef& ref);

  // Notes as needed what the version needs. Cheap where the older part of the version has been
  // marked as a whole before: mark the oldest first.
  void mark(const format::Version& version);
  // From here on mark() is told of versions that perhaps do not count any more: what only they need
  // is not firm, and may be damaged or gone.
  void begin_stale();

  bool is_marked(RecordId id) const { return id < marked_.size() && marked_[id]; }
  std::size_t size() const noexcept { return records_.size(); }
  const format::RecordRef& record(RecordId id) const { return records_[id]; }
  bool is_firm(RecordId id) const { return id < firm_.size() && firm_[id]; }
  // Slots of a pages or deltas record that some marked version shows, and those of versions that
  // count. REQUIRES: made for slots.
  std::vector<format::SlotRange> needed_slots(RecordId id) { return slots_.of(id); }
  std::vector<format::SlotRange> firm_slots(RecordId id) { return firm_slots_.of(id); }
  // Packs that the runs read so far name: opening a version opens them, needed or not.
  const std::set<std::uint64_t>& named_packs() const noexcept { return named_packs_; }

 private:
  // What the runs with these roots show that nothing newer hides.
  using Roots = std::vector<RecordId>;
  struct Part {
    std::vector<format::SavedCensus::Range> records;
    std::vector<std::uint64_t> packs;
  };
  void read(std::span<const format::RunRef> runs, Part& part);
  void take(const Part& part);
  const Part& part_of(const Roots& roots, const format::Version& version);
  void note(RecordId id);
  void note_entry(const Entry& e, ShownPages& shown);
  RecordId id_of(const format::RecordRef& ref);

  // A list of roots, as a number: lists are put together from the oldest root on, and share what
  // they share. 0: the empty one.
  using ListId = std::uint32_t;
  ListId list_of(ListId older, RecordId root);
  // Of a version: the list of all its roots, and those of the newest runs down to where a version
  // begins that has been marked. What that one shows is marked, whether the runs above hide it or
  // not. None: the whole version is.
  struct Stretch {
    Roots roots;
    ListId whole = 0;
  };
  Stretch above_marked(const format::Version& version);

  struct RefHash {
    std::size_t operator()(const format::RecordRef& r) const noexcept;
  };
  StoreCore& store_;
  const bool note_slots_;
  bool stale_ = false;
  SlotUses slots_, firm_slots_;
  std::map<format::RecordRef, Run> runs_;
  std::unordered_map<format::RecordRef, RecordId, RefHash> ids_;
  std::vector<format::RecordRef> records_;
  std::size_t sorted_records_ = 0;  // the first of them, from the earlier census, not in ids_
  std::vector<std::uint32_t> lines_;
  std::vector<bool> marked_, firm_;
  std::vector<RecordId> noted_;  // while a part is read; perhaps more than once
  std::set<std::uint64_t> named_packs_;
  std::unordered_map<std::uint64_t, ListId> lists_;  // by the older list and the root above it
  std::vector<bool> marked_lists_{true};
  std::map<Roots, Part> earlier_, parts_;
  std::size_t believed_ = 0;  // of the earlier parts
  bool has_news_ = false;
};

}  // namespace vellum::store
