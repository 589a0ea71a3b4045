// store/gc/pack_mover.hpp: pack moves between home and archives, and copies of packs in caches.
//
// A move makes a durable, compared copy, gives it the name, then removes the old file. So the pack
// is whole in one of the two places at every moment, and in both for a while. The one at home
// counts. A process that pins a byte of a pack holds the names (store/catalog/lock/version_pin.hpp). A
// pack changes its file only while the names are held alone and no byte of the pack is pinned, as
// when it is written again.
//
// All functions REQUIRE the lock of gc. Those that change a pack's place also REQUIRE that no
// writer will write it any more (Roots::settled_bytes).
#pragma once

#include <string>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/pack_copy.hpp"

namespace vellum::store {

// False: the pin of an open version is on the file, which stays. Errc::busy: the names are held
// elsewhere.
bool move_to_archive(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
                     const std::string& archive, const CopyProgress& progress);
bool move_home(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
               const CopyProgress& progress);

// Whether the cache's file of that name is a copy of the pack as it is now.
bool is_copy_current(StoreDirectory& store, std::uint64_t pack, const std::string& cache);
void copy_to_cache(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
                   const std::string& cache, const CopyProgress& progress);
// Removes copies of packs that are gone or have been written again since, as far as it can. Returns
// how many it removed.
std::uint64_t remove_stale_copies(StoreDirectory& store, const GcExclusive& gc);

// Removes what an interrupted move, copy or recompression has left. REQUIRES: the store owns its
// archives (PackPlaces::require_owned).
void remove_leftovers(StoreDirectory& store, const GcExclusive& gc);

}  // namespace vellum::store
