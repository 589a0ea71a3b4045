// store/gc/pack_mover.hpp: pack moves between home and archives, and copies of packs in caches.
//
// Home is the store's own directory of packs. A move writes a durable copy, compares it, gives it
// the name, and then removes the old file. The pack is therefore always whole in at least one of
// the two directories. If it is in both, the one at home is valid. A process that pins a byte of a
// pack holds the names (store/catalog/lock/version_pin.hpp). The file of a pack is replaced only
// while the names are held exclusively and no byte of the pack is pinned. This also holds for
// rewriting a pack.
//
// All functions REQUIRE the lock of gc. Those that move a pack also REQUIRE that no writer will
// write it any more (Roots::settled_bytes).
#pragma once

#include <string>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/pack_copy.hpp"

namespace vellum::store {

// False: an open version has a pin on the file, which is not moved. Errc::busy: another process
// holds the names.
bool move_to_archive(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
                     const std::string& archive, const CopyProgress& progress);
bool move_home(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
               const CopyProgress& progress);

// Whether the cache's file of that name is a copy of the current pack.
bool is_copy_current(StoreDirectory& store, std::uint64_t pack, const std::string& cache);
void copy_to_cache(StoreDirectory& store, const GcExclusive& gc, std::uint64_t pack,
                   const std::string& cache, const CopyProgress& progress);
// Removes copies of packs that were removed or rewritten, as far as possible. Returns the number of
// removed copies.
std::uint64_t remove_stale_copies(StoreDirectory& store, const GcExclusive& gc);

// Removes the files of interrupted moves, copies and recompressions. REQUIRES: the store owns its
// archives (PackPlaces::require_owned).
void remove_leftovers(StoreDirectory& store, const GcExclusive& gc);

}  // namespace vellum::store
