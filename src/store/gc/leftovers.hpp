// store/gc/leftovers.hpp: what processes that were killed have left in a store, and nothing refers
// to.
#pragma once

#include "store/catalog/store_core.hpp"

namespace vellum::store {

// Removes what lies in the store's tmp directory: files on their way to a name, and packs that were
// being moved or written again. Whoever makes a file for a name has it locked, and keeps it.
// REQUIRES: the lock of gc, so that nobody moves a pack.
void remove_unfinished(StoreCore& store);

// Removes branches aside of live snapshots, directories of branches without a journal, and marks of
// tiers in the making. Whoever is at work on one of these has it locked, and keeps it. The rest is
// in remove_leftovers() (store/gc/pack_mover.hpp). REQUIRES: the lock of gc, and the archives are
// this store's own.
void remove_what_kills_left(StoreCore& store);

}  // namespace vellum::store
