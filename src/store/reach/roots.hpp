// store/reach/roots.hpp: every version whose data has to stay, and how much of each pack belongs to
// nobody's writer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/catalog/store_core.hpp"

namespace vellum::store {

struct Root {
  std::string name;  // of the snapshot or branch; empty for what is kept for another reason
  bool is_branch = false;
  // A branch's base frame before the last: kept as long as it stands in the journal, since a power
  // cut may take the last one away. What of it cannot be read has ceased to count before.
  bool may_be_stale = false;
  format::Version version;
  std::uint64_t order = 0;  // of a snapshot: format::SnapshotRef
};

struct Roots {
  std::vector<std::uint64_t> packs;  // ascending; later ones belong to writers
  std::vector<Root> versions;        // by branch and sequence, oldest first
  std::uint64_t snapshots = 0, branches = 0;
  std::uint64_t kept_open = 0;  // versions that someone has open, with a name or without

  // Of a pack: the bytes from its start that no writer will ever write again. nullopt: all of them.
  std::optional<std::uint64_t> settled_bytes(std::uint64_t pack) const;
  // Of a pack: the bytes from its start that have been flushed for sure. Of a branch's active pack
  // those that a version was published on; of one before it all, when the next number is there: a
  // pack is flushed before the next is made, and the last that a crash has left is followed by a
  // gap. What lies beyond may be there now, and be gone after a power cut: a fold that was cut off.
  std::uint64_t reached_bytes(std::uint64_t pack) const;
  // For a branch's own writer: its head, which is durable.
  void note_reached(const format::Version& head);

 private:
  friend Roots read_roots(StoreCore& store);
  std::map<std::uint64_t, std::uint64_t> next_pack_;    // by branch id: the first that it may write
  std::map<std::uint64_t, std::uint64_t> active_ends_;  // by pack
  struct Reach {
    std::uint64_t active_pack = 0, active_end_bytes = 0;
    auto operator<=>(const Reach&) const = default;
  };
  // By branch id: how far its writer had got at least. Of a branch that is gone its versions tell.
  std::map<std::uint64_t, Reach> reach_;
};

// Throws what reading any ref or journal throws: with one missing nothing can be told.
// REQUIRES: names are held (store/lock/lease.hpp).
Roots read_roots(StoreCore& store);

}  // namespace vellum::store
