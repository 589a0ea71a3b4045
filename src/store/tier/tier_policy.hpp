// store/tier/tier_policy.hpp: moves packs between tiers, and fills caches.
#pragma once

#include <optional>
#include <string>

#include "store/catalog/progress.hpp"
#include "store/tier/tiers.hpp"

namespace vellum::store {

// Counted alike in a dry run, of what would be done.
struct TierReport {
  std::uint64_t packs_moved = 0, moved_bytes = 0;
  std::uint64_t packs_in_use = 0;  // left where they are: someone has a version open
  std::uint64_t copies_made = 0, copied_bytes = 0, copies_removed = 0;
  std::uint64_t home_bytes = 0;  // that packs take at home afterwards
};

struct MoveChoice {
  bool to_archive = true;                   // else home
  std::optional<std::uint64_t> home_bytes;  // to the archive: stop when packs at home take no more;
                                            // home: as long as they take no more
  std::uint64_t keep_last = 0;              // to the archive: not what a head or one of the last N
                                            // snapshots needs
};

// To the first archive that is there: the coldest packs first. Home: the hottest first. Only packs
// that no writer will write any more. Errc::not_found: there is no archive; no_space: it is full;
// packs moved by then stay moved. What someone has open stays where it is.
TierReport move_packs(StoreCore& store, const MoveChoice& choice, bool look_only,
                      const ProgressFn& progress);

// What the limits of home and caches say (store/tier/tiers.hpp): the coldest packs go to the
// archive, and each cache that is there gets copies of the hottest, and loses all others.
TierReport apply_tiers(StoreCore& store, bool look_only, const ProgressFn& progress);

}  // namespace vellum::store
