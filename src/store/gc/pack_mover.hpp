// store/gc/pack_mover.hpp: pack moves between home and archives, and copies of packs in caches.
//
// Home is the store's own directory of packs. A move writes a durable copy, compares it, gives it
// the name, and then removes the old file. The pack is therefore always whole in at least one of
// the two directories. If it is in both, the one at home is valid. A process that pins a byte of a
// pack holds the names (store/catalog/lock/version_pin.hpp). The file of a pack is replaced only
// while the names are held exclusively and no byte of the pack is pinned. This also holds for
// rewriting a pack.
//
// Functions that take a store REQUIRE the lock of gc. Those that move a pack also REQUIRE that no writer will
// write it any more (Roots::settled_bytes).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/files/file.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The name of an unfinished copy, in its target directory or in the store's `tmp`.
std::string copy_file_name(std::uint64_t pack);
bool is_copy_file_name(const std::string& name);

using CopyProgress = std::function<void(std::uint64_t bytes)>;

// Copies `from` to the new file `to`, with holes for zero blocks, then reads the copy back and
// compares it. On return the content is durable, the name is not. Removes the copy if it throws.
// REQUIRES: no process writes `from` meanwhile. A process may punch holes, and the comparison may
// then fail.
void copy_pack_file(base::Fs& fs, const base::File& from, const std::string& to,
                    const CopyProgress& progress);

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

// Removes unpublished files, and unfinished copies of packs, from the store's tmp directory. Keeps
// a file that its creator has locked. REQUIRES: the lock of gc, so that no process moves a pack.
void remove_unfinished(StoreDirectory& store, const GcExclusive& gc);

// Removes staging branches, branch directories without a journal, and unfinished ids of tiers,
// except those that a process has locked. Also removes named scratch files of spill files.
// remove_leftovers() (store/gc/pack_mover.hpp) removes the rest. REQUIRES: the lock of gc; the
// archives are this store's own.
void remove_orphans(StoreDirectory& store, const GcExclusive& gc);

}  // namespace vellum::store
