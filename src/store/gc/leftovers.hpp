// store/gc/leftovers.hpp: removes the unreferenced files of killed processes.
#pragma once

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Removes unpublished files, and unfinished copies of packs, from the store's tmp directory. Keeps
// a file that its creator has locked. REQUIRES: the lock of gc, so that no process moves a pack.
void remove_unfinished(StoreDirectory& store, const GcExclusive& gc);

// Removes staging branches, branch directories without a journal, and unfinished ids of tiers,
// except those that a process has locked. Also removes named scratch files of spill files.
// remove_leftovers() (store/gc/pack_mover.hpp) removes the rest. REQUIRES: the lock of gc; the
// archives are this store's own.
void remove_orphans(StoreDirectory& store, const GcExclusive& gc);

}  // namespace vellum::store
