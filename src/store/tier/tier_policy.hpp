// store/tier/tier_policy.hpp: pack moves between tiers, and the contents of caches.
#pragma once

#include <optional>
#include <string>

#include "store/catalog/progress.hpp"
#include "store/tier/tiers.hpp"

namespace vellum::store {

// A dry run counts in the same way what it would do.
struct TierReport {
  std::uint64_t packs_moved = 0, moved_bytes = 0;
  std::uint64_t packs_in_use = 0;  // left in place: the pin of an open version is on them
  std::uint64_t copies_made = 0, copied_bytes = 0, copies_removed = 0;
  std::uint64_t home_bytes = 0;  // of the packs at home afterwards
};

struct MoveChoice {
  bool to_archive = true;                   // else home
  std::optional<std::uint64_t> home_bytes;  // to the archive: stop when packs at home take no more;
                                            // home: as long as they take no more
  std::uint64_t keep_last = 0;  // to the archive: spares packs of heads and of the last N
                                // snapshots; 0: spares none
};

// Moves packs to the first archive that is present, coldest first, or home, hottest first. Only
// packs that no writer will write any more move, and packs with an open version's pin stay.
// Errc::not_found: there is no archive; no_space: it is full; packs moved by then stay moved.
TierReport move_packs(StoreCore& store, const MoveChoice& choice, bool look_only,
                      const ProgressFn& progress);

// Applies the limits of home and caches (store/tier/tiers.hpp). The coldest packs go to the
// archive; each cache that is present gets copies of the hottest packs and loses all others.
TierReport apply_tiers(StoreCore& store, bool look_only, const ProgressFn& progress);

}  // namespace vellum::store
