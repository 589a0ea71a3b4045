// store/packs/record/pack_extents.hpp: the bytes of a pack that records take.
//
// REQUIRES of all functions: no pack gets another file meanwhile, and PackSet::refresh() was called
// since one last did.
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

// Where records of one pack lie. `offsets` are those of references, ascending. An extent is never
// less than the record takes, and more only where the bytes behind the record are gone already.
// Throws Errc::corrupted where there is no record. `known`, if not empty, has the size of each
// record in units of kRecordAlignBytes at the offset that references use; 0: not known. It is used,
// and filled in, where an untranslated pack has no index; elsewhere it becomes 0. Of a pack that is
// elsewhere, the extents are where references put the records.
std::vector<Extent> record_extents(PackStore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets,
                                   std::span<std::uint32_t> known = {});

// The index lines of the records at these places, which ascend. A record that the index does not
// list is described by its own header.
std::vector<format::IndexLine> record_lines(PackStore& store, std::uint64_t pack,
                                            std::span<const std::uint64_t> places);

// The `hashes` records of a pack, from its index or, if it has none, from the headers of its
// records, one after the other. A record that an index names may be gone.
std::vector<format::IndexLine> hash_records(PackStore& store, std::uint64_t pack);
// The extent of a record that has no hash.
Extent extent_of(const format::IndexLine& line) noexcept;

// Of each record that the pack's index names, and of the index itself with what follows it. Empty
// where the pack has no index.
struct IndexedExtent {
  Extent at;
  std::uint32_t tag = 0;
};
std::vector<IndexedExtent> indexed_extents(PackStore& store, std::uint64_t pack);

// The bytes behind the records of a sealed pack: its translation, if it has one, index and trailer.
// Empty if there are none.
Extent index_extent(PackStore& store, std::uint64_t pack);

// The copy of its version that a checkpoint wrote right behind the root of the newest run. A
// reference gives that root's offset as `root_offset_bytes`. Empty if there is no copy, or the pack
// is elsewhere.
Extent version_copy_extent(PackStore& store, std::uint64_t pack, std::uint64_t root_offset_bytes);

}  // namespace vellum::store
