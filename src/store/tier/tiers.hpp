// store/tier/tiers.hpp: which directories a store has besides its own, and what they hold.
//
// All of it is a choice of the store's owner and may change beside readers and writers; the changes
// take the lock of gc (Errc::busy).
#pragma once

#include <string>
#include <vector>

#include "store/catalog/store_core.hpp"

namespace vellum::store {

struct TierUse {
  std::uint64_t packs = 0;
  std::uint64_t bytes = 0;  // on the medium
};

struct TierList {
  std::uint64_t home_limit_bytes = 0;
  TierUse home;
  struct Directory {
    format::TierDirectory tier;
    bool present = false;   // use is known only then
    bool writable = false;  // and it is not that of a store of which this one is a copy
    TierUse use;
  };
  std::vector<Directory> directories;  // as they were added
};

// Throws Errc::damaged when the list of tiers cannot be read.
TierList list_tiers(StoreCore& store);

// What packs of one directory take.
TierUse use_of_directory(StoreCore& store, const std::string& directory);

// `path` is absolute. The directory is made, or is empty, or was a tier of this store before: one
// that has moved is found again so. Adding what is there changes its limit.
void add_tier(StoreCore& store, format::TierKind kind, const std::string& path,
              std::uint64_t limit_bytes);
// Errc::busy when it is an archive and holds packs, io when nobody can see whether it does,
// read_only when it is another store's. Copies of a cache go.
void remove_tier(StoreCore& store, const std::string& path);
// What packs may take at home, or copies in a cache; 0: no limit. For apply_tiers().
void limit_home(StoreCore& store, std::uint64_t bytes);
void limit_cache(StoreCore& store, const std::string& path, std::uint64_t bytes);

}  // namespace vellum::store
