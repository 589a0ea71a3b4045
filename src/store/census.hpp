// store/census.hpp: which records versions need, and where in the packs they lie.
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

#include "store/store_core.hpp"

namespace vellum::store {

class Census {
 public:
  using RecordId = std::uint32_t;

  explicit Census(StoreCore& store) : store_(store) {}

  // Calls `need` for everything that the version needs, perhaps more than once; returns how many
  // of its pages are not zero. Throws Errc::damaged.
  std::uint64_t visit(const format::Version& version, const std::function<void(RecordId)>& need);

  // Notes as needed what the version needs. Cheap where the older part of the version has been
  // marked as a whole before: mark the oldest first.
  void mark(const format::Version& version);

  bool is_marked(RecordId id) const { return id < marked_.size() && marked_[id]; }
  std::size_t size() const noexcept { return records_.size(); }
  const format::RecordRef& record(RecordId id) const { return records_[id]; }
  // Packs that the runs read so far name: opening a version opens them, needed or not.
  const std::set<std::uint64_t>& named_packs() const noexcept { return named_packs_; }

 private:
  struct Entry {
    format::PageNumber page;
    std::uint32_t count;
    RecordId record;
    format::PageKind kind;
  };
  struct Run {
    std::vector<RecordId> own;  // its root and its blocks
    std::vector<Entry> entries;
  };
  const Run& load(const format::RunRef& ref);
  RecordId id_of(const format::RecordRef& ref);

  struct RefHash {
    std::size_t operator()(const format::RecordRef& r) const noexcept;
  };
  StoreCore& store_;
  std::map<format::RecordRef, Run> runs_;
  std::unordered_map<format::RecordRef, RecordId, RefHash> ids_;
  std::vector<format::RecordRef> records_;
  std::vector<bool> marked_;
  std::set<std::uint64_t> named_packs_;
  std::set<std::vector<format::RecordRef>> marked_lists_;  // roots of versions, newest first
};

// A stretch of a pack that is needed.
struct Extent {
  std::uint64_t from = 0, to = 0;
  auto operator<=>(const Extent&) const = default;
};

// Where records of one pack end: its index says, or else each record itself. `offsets` ascend.
// Never less than the record takes; more only where what follows it is gone already. Throws
// Errc::damaged where there is no record.
std::vector<Extent> record_extents(StoreCore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets);

// The `hashes` records of a pack, as far as its index or the records themselves lead to them.
std::vector<format::RecordRef> hash_records(StoreCore& store, std::uint64_t pack);

// Index and trailer of a sealed pack; empty where there are none.
Extent index_extent(StoreCore& store, std::uint64_t pack);

// The copy of its version that a fold left behind the root of the newest run; empty where there is
// none.
Extent version_copy_extent(StoreCore& store, std::uint64_t pack, std::uint64_t root_offset_bytes);

}  // namespace vellum::store
