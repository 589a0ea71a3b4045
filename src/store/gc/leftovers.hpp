// store/gc/leftovers.hpp: the removal of unreferenced files that killed processes have left.
#pragma once

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Clears the store's tmp directory of files on their way to a name and of packs that were being
// moved or written again. A file that its maker has locked stays. REQUIRES: the lock of gc, so that
// nobody moves a pack.
void remove_unfinished(StoreDirectory& store, const GcExclusive& gc);

// Removes branches aside of live snapshots, branch directories without a journal, and unfinished
// ids of tiers. Those that a process at work has locked stay. Also removes named scratch files of
// spill files. remove_leftovers() (store/gc/pack_mover.hpp) removes the rest. REQUIRES: the lock of
// gc; the archives are this store's own.
void remove_what_kills_left(StoreDirectory& store, const GcExclusive& gc);

}  // namespace vellum::store
