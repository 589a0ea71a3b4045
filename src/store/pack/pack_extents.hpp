// store/pack/pack_extents.hpp: which bytes of a pack records take.
//
// REQUIRES of all: no pack gets another file meanwhile, and PackSet::refresh() was called since the
// last one did.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "format/record.hpp"
#include "store/pack/pack_store.hpp"

namespace vellum::store {

// A stretch of a pack's file.
struct Extent {
  std::uint64_t from = 0, to = 0;
  auto operator<=>(const Extent&) const = default;
};

// Where records of one pack lie; `offsets` are those of references, and ascend. Never less than the
// record takes; more only where what follows it is gone already. Throws Errc::damaged where there
// is no record. `known`, if not empty: of each record what it takes in units of kRecordAlignBytes,
// where references put it; 0: not known. That is used, and filled in, where the pack has no index;
// elsewhere it becomes 0.
std::vector<Extent> record_extents(PackStore& store, std::uint64_t pack,
                                   std::span<const std::uint64_t> offsets,
                                   std::span<std::uint32_t> known = {});

// What the pack's index says of the records at these places, which ascend; where it says nothing,
// what they say themselves.
std::vector<format::IndexLine> record_lines(PackStore& store, std::uint64_t pack,
                                            std::span<const std::uint64_t> places);

// The `hashes` records of a pack: what its index says of them, or, where there is none, what they
// say themselves, one record after the other. One that an index names may be gone.
std::vector<format::IndexLine> hash_records(PackStore& store, std::uint64_t pack);
// Where a record without a hash lies.
Extent extent_of(const format::IndexLine& line) noexcept;

// What stands behind the records of a sealed pack: its translation, if it has one, index and
// trailer. Empty where there is nothing.
Extent index_extent(PackStore& store, std::uint64_t pack);

// The copy of its version that a fold left behind the root of the newest run, to which a reference
// leads by `root_offset_bytes`; empty where there is none.
Extent version_copy_extent(PackStore& store, std::uint64_t pack, std::uint64_t root_offset_bytes);

}  // namespace vellum::store
