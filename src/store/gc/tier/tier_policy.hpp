// store/gc/tier/tier_policy.hpp: pack moves between tiers, and the contents of caches.
#pragma once

#include <vellum/report.hpp>
#include <vellum/tier.hpp>

#include "store/gc/tier/tiers.hpp"

namespace vellum::store {

// Moves packs to the first archive that is present, coldest first, or home, hottest first. Only
// packs that no writer will write any more move, and packs with an open version's pin stay.
// Errc::not_found: there is no archive; no_space: it is full; packs moved by then stay moved.
TierReport move_packs(StoreDirectory& store, const TierMove& move, const ProgressFn& progress);

// Applies the limits of home and caches (store/gc/tier/tiers.hpp). The coldest packs go to the
// archive; each cache that is present gets copies of the hottest packs and loses all others.
TierReport apply_tiers(StoreDirectory& store, bool dry_run, const ProgressFn& progress);

}  // namespace vellum::store
