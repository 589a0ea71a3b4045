// store/gc/tier/tiers.hpp: the directories that a store has besides its own, and their contents.
//
// The store's owner chooses them and may change them beside readers and writers. Changes take the
// lock of gc (Errc::busy).
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

// The home, and then the other directories in the order in which they were added. Throws
// Errc::corrupted when the list of tiers cannot be read.
std::vector<Tier> list_tiers(StoreDirectory& store);

// The number and size of one directory's packs.
TierUse use_of_directory(StoreDirectory& store, const std::string& directory);

// `path` is absolute. The directory is made if missing; otherwise it is empty or was a tier of this
// store before, so a tier that has moved is found again. Adding a listed tier changes its limit.
void add_tier(StoreDirectory& store, format::TierKind kind, const std::string& path,
              std::uint64_t limit_bytes);
// Removes a tier, with the copies of a cache. Errors for an archive: Errc::busy (it holds packs),
// io (nobody can see whether it does), read_only (it is another store's).
void remove_tier(StoreDirectory& store, const std::string& path);
// Limits the size of packs at home, or of copies in a cache; 0: no limit. For apply_tiers().
void limit_home(StoreDirectory& store, std::uint64_t bytes);
void limit_cache(StoreDirectory& store, const std::string& path, std::uint64_t bytes);

}  // namespace vellum::store
