// store/gc/reach/roots.hpp: the versions whose data gc keeps, and the bytes that no writer changes.
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
  // The version of a branch's base frame before the last one. It is kept while the frame is in the
  // journal, since a power cut may undo the last one. Its unreadable parts were freed before.
  bool may_be_stale = false;
  format::Version version;
  std::uint64_t order = 0;  // of a snapshot; see format::SnapshotRef
};

struct Roots {
  std::vector<std::uint64_t> packs;  // ascending; packs created later belong to writers
  std::vector<Root> versions;        // by branch and sequence, oldest first
  std::uint64_t snapshots = 0, branches = 0;
  std::uint64_t kept_open = 0;  // versions that a process has open, with a name or without

  // The number of bytes from a pack's start that no writer will write again; nullopt: all.
  std::optional<std::uint64_t> settled_bytes(std::uint64_t pack) const;
  // The number of bytes from a pack's start that are certainly durable:
  // - of a branch's active pack, the bytes up to the end that a published version records,
  // - of an earlier pack, all if the pack with the next number exists. A pack is flushed before the
  //   next is created, and after a crash a gap follows the last pack.
  // Bytes past these, of an interrupted checkpoint, may exist now and be lost by a power cut.
  std::uint64_t reached_bytes(std::uint64_t pack) const;
  // For a branch's own writer: records its head. REQUIRES: the head is durable.
  void note_reached(const format::Version& head);

 private:
  friend Roots read_roots(StoreDirectory& store);
  std::map<std::uint64_t, std::uint64_t> next_pack_;    // by branch id: the next that it may create
  std::map<std::uint64_t, std::uint64_t> active_ends_;  // by pack
  struct WriterEnd {
    std::uint64_t active_pack = 0, active_end_bytes = 0;
    auto operator<=>(const WriterEnd&) const = default;
  };
  // By branch id: a lower bound of its writer's end; for a removed branch, the end in its versions.
  std::map<std::uint64_t, WriterEnd> writer_ends_;
};

// Throws the error of any ref or journal that cannot be read: without it the result would be wrong.
// REQUIRES: names are held (store/catalog/lock/version_pin.hpp).
Roots read_roots(StoreDirectory& store);

}  // namespace vellum::store
