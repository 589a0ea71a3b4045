// store/packs/record/pack_extents.hpp: the bytes that records take in a pack.
//
// REQUIRES of all functions: no pack gets another file meanwhile, and PackSet::refresh() was called
// after the last such change.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "format/records/record.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// A stretch of a pack's file.
struct Extent {
  std::uint64_t from = 0, to = 0;
  auto operator<=>(const Extent&) const = default;
};

// The extents of records of one pack. `offsets` are those of references. An extent is never smaller
// than the record, and larger only if the bytes behind the record are already free. Throws
// Errc::corrupted if there is no record. `known`, if not empty, has the size of each record in
// units of kRecordAlignBytes; 0: unknown. It is used and filled in if an untranslated pack has no
// index; otherwise it becomes 0. The extents of a remote pack are at the offsets of the references.
// REQUIRES: `offsets` ascend; `known` is empty or as long as `offsets`.
std::vector<Extent> record_extents(PackStore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets,
                                   std::span<std::uint32_t> known = {});

// The index lines of the records at these places. A record that the index does not list is
// described by its own header. REQUIRES: `places` ascend.
std::vector<format::IndexLine> record_lines(PackStore& store, std::uint64_t pack,
                                            std::span<const std::uint64_t> places);

// The `hashes` records of a pack, from its index or, if it has none, from the headers of its
// records in order. A record that an index lists may be free.
std::vector<format::IndexLine> hash_records(PackStore& store, std::uint64_t pack);
// The extent of a record that has no hash.
Extent extent_of(const PackStore& store, const format::IndexLine& line) noexcept;

// The extents of all records that the pack's index lists, and of the index itself up to the end of
// the file. Empty if the pack has no index.
struct IndexedExtent {
  Extent at;
  std::uint32_t tag = 0;
};
std::vector<IndexedExtent> indexed_extents(PackStore& store, std::uint64_t pack);

// The bytes behind the records of a sealed pack: translation (if any), index and trailer. Empty if
// there are none.
Extent index_extent(PackStore& store, std::uint64_t pack);

// The copy of its version that a checkpoint wrote directly behind the root of the newest run, whose
// offset in references is `root_offset_bytes`. Empty if there is no copy, or the pack is remote.
Extent version_copy_extent(PackStore& store, std::uint64_t pack, std::uint64_t root_offset_bytes);

}  // namespace vellum::store
