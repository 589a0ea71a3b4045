// store/gc/pack_mover.hpp: moves a pack between its home and an archive, and keeps copies in
// caches.
//
// A move is a copy that is durable and compared, then a name, then the end of the old file; so the
// pack is whole in one of the two places at every moment, and in both for a while. The one at home
// counts. Whoever marks a byte of a pack holds the names (store/lock/lease.hpp), and a pack
// changes its file only while the names are held alone and no byte of it is marked: as when a pack
// is written again.
//
// REQUIRES of all: the lock of gc; of those that change a pack's place, that no writer will write
// it any more (Roots::settled_bytes).
#pragma once

#include <string>

#include "store/catalog/store_core.hpp"
#include "store/gc/pack_copy.hpp"

namespace vellum::store {

// False: someone has a version open whose mark is on the file; it stays. Errc::busy: someone holds
// the names.
bool move_to_archive(StoreCore& store, std::uint64_t pack, const std::string& archive,
                     const CopyProgress& progress);
bool move_home(StoreCore& store, std::uint64_t pack, const CopyProgress& progress);

// Whether the file of that name in a cache is a copy of the pack as it is now.
bool is_copy_current(StoreCore& store, std::uint64_t pack, const std::string& cache);
void copy_to_cache(StoreCore& store, std::uint64_t pack, const std::string& cache,
                   const CopyProgress& progress);
// Copies of packs that are gone, or have been written again since. As well as it goes; returns how
// many went.
std::uint64_t remove_stale_copies(StoreCore& store);

// What a move, a copy or a recompression that was cut off has left. REQUIRES: the store owns its
// archives (PackPlaces::require_owned).
void remove_leftovers(StoreCore& store);

}  // namespace vellum::store
