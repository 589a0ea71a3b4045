// store/gc/tier/tier_policy.hpp: pack moves between tiers, and the contents of caches.
#pragma once

#include <vellum/report.hpp>
#include <vellum/tier.hpp>

#include "store/gc/tier/tiers.hpp"

namespace vellum::store {

// Moves packs to the first archive that is present, coldest first, or home, hottest first. Does not
// move packs that a writer may still write, or on which an open version has a pin. Errc::not_found:
// the store has no archive; no_space: it is full. Packs moved before the error remain moved.
TierReport move_packs(StoreDirectory& store, const TierMove& move, const ProgressFn& progress);

// Applies the limits of home and caches (store/gc/tier/tiers.hpp). Moves the coldest packs to the
// archive. Fills each cache that is present with copies of the hottest packs, and removes all other
// copies.
TierReport apply_tiers(StoreDirectory& store, bool dry_run, const ProgressFn& progress);

}  // namespace vellum::store
