// store/gc/reach/roots.hpp: versions whose data must stay, and the bytes of packs without a writer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

struct Root {
  std::string name;  // of the snapshot or branch; empty for a version kept for another reason
  bool is_branch = false;
  // A branch's base frame before the last. It counts as long as it stands in the journal, since a
  // power cut may take the last one away. Parts of it that cannot be read ceased to count before.
  bool may_be_stale = false;
  format::Version version;
  std::uint64_t order = 0;  // of a snapshot; see format::SnapshotRef
};

struct Roots {
  std::vector<std::uint64_t> packs;  // ascending; later ones belong to writers
  std::vector<Root> versions;        // by branch and sequence, oldest first
  std::uint64_t snapshots = 0, branches = 0;
  std::uint64_t kept_open = 0;  // versions that someone has open, with a name or without

  // The bytes from a pack's start that no writer will ever write again; nullopt: all of them.
  std::optional<std::uint64_t> settled_bytes(std::uint64_t pack) const;
  // The bytes from a pack's start that have certainly been flushed:
  // - of a branch's active pack, the bytes that a version was published on,
  // - of an earlier pack, all if the next number exists: a pack is flushed before the next is made,
  //   and a gap follows the last pack that a crash has left.
  // Bytes beyond, of a checkpoint that was cut off, may exist now and be gone after a power cut.
  std::uint64_t reached_bytes(std::uint64_t pack) const;
  // For a branch's own writer: notes its head, which is durable.
  void note_reached(const format::Version& head);

 private:
  friend Roots read_roots(StoreDirectory& store);
  std::map<std::uint64_t, std::uint64_t> next_pack_;    // by branch id: the first that it may write
  std::map<std::uint64_t, std::uint64_t> active_ends_;  // by pack
  struct WriterEnd {
    std::uint64_t active_pack = 0, active_end_bytes = 0;
    auto operator<=>(const WriterEnd&) const = default;
  };
  // By branch id: how far its writer had got at least. For a removed branch, its versions tell.
  std::map<std::uint64_t, WriterEnd> writer_ends_;
};

// Throws the errors of reading any ref or journal: with one missing, the result would be wrong.
// REQUIRES: names are held (store/catalog/lock/version_pin.hpp).
Roots read_roots(StoreDirectory& store);

}  // namespace vellum::store
