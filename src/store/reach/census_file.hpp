// store/reach/census_file.hpp: what one gc has found out, kept for the next in the file gc.census.
//
// Why it can be believed. What a stretch of runs shows that nothing newer hides follows from the
// contents of its roots and map blocks alone: not from the versions that have these runs, not from
// what was removed since. A root names its blocks, and a block its records, by place and tag, and
// packs are append-only; so a part of the census belongs to the list of its roots, for good, and is
// looked up by nothing but that list, tags included. A name that is gone, a version that comes back
// with a backup, a branch that was repaired or salvaged: each leads to lists of roots, and a list
// has the part that it had. References do not change when a pack is written again
// (store/gc/recompress.hpp), and pack numbers are not given twice. Where a power cut, or an old
// copy of the packs under a newer file, brings another record to a place that a root had, its tag
// is another: the same that a reader goes by.
//
// So the file may be missing, old, of another store's, torn or damaged: what it does not say is
// read from the maps. What it says of packs that are not there is not taken. Nor is it an error
// when what it says leads nowhere: gc then begins again without it (store/gc/gc.cpp), before
// anything is freed.
//
// What is lost: gc does not look at maps that it knows, so it does not find that they have been
// damaged since. It frees what it would have freed when they were whole, and never what they name.
#pragma once

#include "store/reach/census.hpp"

namespace vellum::store {

// What an earlier gc has left there; nothing where it cannot be read. Throws no Error.
format::SavedCensus read_census_file(StoreCore& store);
// Replaces the file, unless it says that already; where that fails the old one stays, or none.
// `flush`: it is to outlast a power cut. Throws no Error. REQUIRES: gc.lock is held, exclusive.
void write_census_file(StoreCore& store, const format::SavedCensus& census, bool flush);

std::string census_path(const StoreCore& store);

}  // namespace vellum::store
