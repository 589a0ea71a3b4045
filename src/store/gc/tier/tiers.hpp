// store/gc/tier/tiers.hpp: the tiers of a store, directories with packs besides its own.
//
// The store's owner chooses them, and may change them concurrently with readers and writers.
// Changes take the lock of gc (Errc::busy).
#pragma once

#include <string>
#include <vector>
#include <vellum/tier.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

struct TierUse {
  std::uint64_t packs = 0;
  std::uint64_t bytes = 0;  // on the medium
};

// The home, then the other directories in the order of their addition. Throws Errc::corrupted when
// the list of tiers cannot be read.
std::vector<Tier> list_tiers(StoreDirectory& store);

// The number and size of one directory's packs.
TierUse use_of_directory(StoreDirectory& store, const std::string& directory);

// `path` is absolute. A missing directory is created. An existing one must be empty or have been a
// tier of this store, which allows to move a tier. Adding a listed tier changes its limit.
void add_tier(StoreDirectory& store, format::TierKind kind, const std::string& path,
              std::uint64_t limit_bytes);
// Removes a tier, and the copies in a cache. Errors for an archive: Errc::busy (it holds packs), io
// (it is missing, and may hold packs), read_only (it belongs to another store).
void remove_tier(StoreDirectory& store, const std::string& path);
// Limits the size of packs at home, or of copies in a cache; 0: no limit. For apply_tiers().
void limit_home(StoreDirectory& store, std::uint64_t bytes);
void limit_cache(StoreDirectory& store, const std::string& path, std::uint64_t bytes);

}  // namespace vellum::store
