// store/gc/reach/census_file.hpp: the live set of one gc, kept for the next in the file gc.census.
//
// The file can be relied on for these reasons:
// - The records that a stretch of runs shows and nothing newer hides follow from the contents of
//   its roots and map blocks alone, not from the versions that have the runs or later removals.
// - A root names its blocks, and a block its records, by place and tag, and packs are append-only.
//   So a part of the live set belongs permanently to the list of its roots, and only that list,
//   tags included, leads to it.
// - A removed name, a version that comes back with a backup, and a branch that was repaired or
//   repaired all lead to lists of roots, and each list still has its part.
// - References do not change when a pack is written again (store/gc/recompress.hpp), and pack
//   numbers are not reused.
// - A power cut, or an old copy of the packs under a newer file, may bring another record to a
//   root's place. Its tag then differs, and readers go by the same tag.
//
// So the file may be missing, old, another store's, torn or corrupted: gc reads the rest from the
// maps. It ignores parts that name missing packs. A part that leads nowhere is no error: gc then
// begins again without the file (store/gc/gc.cpp), before it frees anything.
//
// The price: gc does not read maps that it knows, so it does not find later damage to them. It
// frees what it would free if they were whole, and never what they name.
#pragma once

#include "store/gc/reach/live_set.hpp"

namespace vellum::store {

// The live set that an earlier gc left; empty if the file cannot be read. Throws no Error.
format::GcCensus read_live_set_file(StoreDirectory& store);
// Replaces the file; on failure the old file stays, or none. `flush`: the file outlasts a power
// cut, and is not written if it says the same already. Throws no Error. REQUIRES: gc.lock is held,
// exclusively.
void write_live_set_file(StoreDirectory& store, const format::GcCensus& live_set, bool flush);

std::string live_set_path(const StoreDirectory& store);

}  // namespace vellum::store
