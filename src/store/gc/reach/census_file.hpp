// store/gc/reach/census_file.hpp: the file gc.census, the live set of the last gc for the next one.
//
// A part of the census has the records that consecutive runs show. Its key is the list of the runs'
// roots. gc can rely on the file for these reasons:
// - The records of a part depend only on the contents of the roots and their map blocks. They do
//   not depend on the versions that have the runs, nor on later removals.
// - A root names its blocks, and a block its records, by offset and tag. Packs are append-only. A
//   part therefore remains right for its list of roots, and only that list, tags included, selects
//   it.
// - Removing a name, restoring a version from a backup, and repairing a branch only change which
//   lists of roots are in use. The part of each list remains right.
// - References do not change when a pack is rewritten (store/gc/recompress.cpp), and pack numbers
//   are not reused.
// - After a power cut, or with an old copy of the packs and a newer file, another record may be at
//   a root's offset. Its tag then differs, and readers check the same tag.
//
// The file may therefore be missing, old, torn, corrupted, or another store's. gc reads from the
// maps all that the file lacks. It ignores parts that name missing packs. A part with wrong
// references is no error: gc then starts again without the file (store/gc/gc.cpp), before it frees
// anything.
//
// The cost: gc does not read maps that the census covers, and does not detect later damage to them.
// It frees the same records as with undamaged maps, and never a record that these maps name.
#pragma once

#include "store/gc/reach/live_set.hpp"

namespace vellum::store {

// The census of an earlier gc; empty if the file cannot be read. Throws no Error.
format::GcCensus read_census_file(StoreDirectory& store);
// Replaces the file. After a failure the old file remains, or none. `flush`: the file survives a
// power cut, and is not written if it already has this content. Throws no Error. REQUIRES: the
// caller holds gc.lock exclusively.
void write_census_file(StoreDirectory& store, const format::GcCensus& census, bool flush);

std::string census_path(const StoreDirectory& store);

}  // namespace vellum::store
