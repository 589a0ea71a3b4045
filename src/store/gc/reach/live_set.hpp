// store/gc/reach/live_set.hpp: the live set: the records that versions need, on request with their
// slots.
//
// A version needs the roots and map blocks of all its runs, and each record that a shown entry
// names, with the records of its base pages. A record that only hidden entries name is not needed: nobody reads it, and no later
// version of the line can bring it back.
//
// The live set reads a run once, however many versions share it. It does not read a run at all
// where an earlier live set has the result (store/gc/reach/census_file.hpp).
#pragma once

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

  // `slots`: reach() also notes which slots of records are needed, at the cost of a step per page.
  explicit LiveSet(StoreDirectory& store, bool slots = false) : store_(store), note_slots_(slots) {}

  // Lets reach() use an earlier live set, except for slots. `packs`: the packs that exist,
  // ascending; parts that name another are ignored. REQUIRES: nothing was reached or loaded.
  void load_earlier(format::GcCensus earlier, std::span<const std::uint64_t> packs);
  // The size of a record in its pack, 0 if it is not known; see record_extents().
  std::uint32_t lines(RecordId id) const { return id < lines_.size() ? lines_[id] : 0; }
  void set_lines(RecordId id, std::uint32_t lines);
  // The findings of reach(), for the next live set: the same for the same versions and packs.
  format::GcCensus save() const;
  // Whether reach() used the earlier live set, and whether save() differs from that live set.
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
    std::vector<std::uint64_t> packs;  // that it names, its own included
  };
  static constexpr RecordId kNoRecord = UINT32_MAX;
  // The contents of a run of the page map; read once. Throws Errc::corrupted.
  const Run& load(const format::RunRef& ref);

  // Reaches the records that the version needs. This is cheap where the older part of the version
  // has been reached as a whole before: begin with the oldest version.
  void reach(const format::Version& version);
  // Also notes base pages of records that are elsewhere, which have to be fetched for that. REQUIRES:
  // nothing was reached.
  void follow_elsewhere() noexcept { follow_elsewhere_ = true; }
  // The versions reached from here on may not count any more: records that only they need are not
  // durable, and may be corrupted or gone.
  void begin_stale();

  bool is_reached(RecordId id) const { return id < reached_.size() && reached_[id]; }
  std::size_t size() const noexcept { return records_.size(); }
  const format::RecordRef& record(RecordId id) const { return records_[id]; }
  bool is_durable(RecordId id) const { return id < durable_.size() && durable_[id]; }
  // Slots of a pages or deltas record that some reached version shows; durable_slots(): that some
  // version that counts shows. REQUIRES: the live set was made for slots.
  std::vector<format::SlotRange> needed_slots(RecordId id) { return slots_.of(id); }
  std::vector<format::SlotRange> durable_slots(RecordId id) { return durable_slots_.of(id); }
  // The records of the base pages of a record, as far as reach() has read it in this live set.
  std::span<const RecordId> bases_of(RecordId id) const {
    const auto at = bases_.find(id);
    return at == bases_.end() ? std::span<const RecordId>() : at->second.records;
  }
  // Packs that the runs seen so far name: opening a version opens them, needed or not.
  const std::set<std::uint64_t>& named_packs() const noexcept { return named_packs_; }

 private:
  // A part has the records that the runs with these roots show and nothing newer hides.
  using Roots = std::vector<RecordId>;
  struct Part {
    std::vector<format::GcCensus::Range> records;
    std::vector<std::uint64_t> packs;
  };
  void read(std::span<const format::RunRef> runs, Part& part);
  void take(const Part& part);
  const Part& part_of(const Roots& roots, const format::Version& version);
  void note(RecordId id);
  void note_shown(const Entry& e);
  void note_entry(const Entry& e, ShownPages& shown);
  void note_bases();
  void note_bases_of(RecordId id);
  RecordId id_of(const format::RecordRef& ref);

  // A list of roots, as a number. Lists grow from the oldest root on, and equal beginnings are
  // shared. 0: the empty list.
  using ListId = std::uint32_t;
  ListId list_of(ListId older, RecordId root);
  // Of a version: `whole`, the list of all its roots, and `roots`, those of the newest runs down to
  // the start of a version that is already reached. Everything that this older version shows is
  // reached, whether the runs above hide it or not. No `roots`: the whole version is reached.
  struct Stretch {
    Roots roots;
    ListId whole = 0;
  };
  Stretch above_reached(const format::Version& version);

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
  std::size_t sorted_records_ = 0;  // those at the front, from the earlier live set, not in ids_
  std::vector<std::uint32_t> lines_;
  std::vector<bool> reached_, durable_;
  std::vector<RecordId> noted_;  // while a part is read; with repetitions
  // Base pages: their records, and the slots there.
  struct Bases {
    std::vector<RecordId> records;
    std::vector<std::pair<RecordId, std::uint32_t>> slots;
  };
  std::unordered_map<RecordId, Bases> bases_;
  std::vector<bool> looked_at_;          // records whose base pages are known, if they have any
  std::vector<RecordId> shown_records_;  // of pages, while a part is read; with repetitions
  bool follow_elsewhere_ = false;
  std::set<std::uint64_t> named_packs_;
  std::unordered_map<std::uint64_t, ListId> lists_;  // by the older list and the root above it
  std::vector<bool> reached_lists_{true};
  std::map<Roots, Part> earlier_, parts_;
  std::size_t earlier_used_ = 0;  // earlier parts in use
  bool has_changed_ = false;
};

}  // namespace vellum::store
