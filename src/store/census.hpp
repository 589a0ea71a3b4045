// store/census.hpp: which records versions need, and on request which slots of them.
//
// A version needs the roots and map blocks of all of its runs, and each record of which an entry
// shows. A record that only hidden entries name is not needed: nobody reads it, and no later
// version of the line can bring it back.
//
// A run is read once, however many versions share it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/shown_pages.hpp"
#include "store/slot_uses.hpp"
#include "store/store_core.hpp"

namespace vellum::store {

class Census {
 public:
  using RecordId = std::uint32_t;

  // `slots`: mark() also notes which slots of records are needed, at the cost of a step a page.
  explicit Census(StoreCore& store, bool slots = false) : store_(store), note_slots_(slots) {}

  // Calls `need` for everything that the version needs, perhaps more than once; returns how many
  // of its pages are not zero. Throws Errc::damaged.
  std::uint64_t visit(const format::Version& version, const std::function<void(RecordId)>& need);

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
  struct Entry {
    format::PageNumber page;
    std::uint32_t count;
    std::uint32_t slot;
    RecordId record;
    format::PageKind kind;
  };
  struct Run {
    std::vector<RecordId> own;  // its root and its blocks
    std::vector<Entry> entries;
  };
  const Run& load(const format::RunRef& ref);
  void note(RecordId id);
  void note_entry(const Entry& e, ShownPages& shown);
  RecordId id_of(const format::RecordRef& ref);

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
  std::vector<bool> marked_, firm_;
  std::set<std::uint64_t> named_packs_;
  std::set<std::vector<format::RecordRef>> marked_lists_;  // roots of versions, newest first
};

}  // namespace vellum::store
