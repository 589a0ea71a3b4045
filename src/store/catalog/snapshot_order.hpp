// store/catalog/snapshot_order.hpp: the order in which a store's snapshots were made, which does
// not depend on the clock.
#pragma once

#include <cstdint>

#include "store/pack/pack_store.hpp"

namespace vellum::store {

// A number larger than that of every snapshot made before, for a new one. Durable on return: it is
// given once, also when the snapshot is never made.
std::uint64_t claim_snapshot_order(PackStore& store);

// After refs have been written with numbers of their own: the next claim looks at all of them.
void forget_snapshot_order(PackStore& store);

}  // namespace vellum::store
