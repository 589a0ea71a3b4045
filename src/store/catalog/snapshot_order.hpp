// store/catalog/snapshot_order.hpp: the order in which a store's snapshots were made.
// It does not depend on the clock.
#pragma once

#include <cstdint>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// A number for a new snapshot, larger than that of every earlier one. Durable on return: it is
// given only once, even if the snapshot is never made.
std::uint64_t claim_snapshot_order(PackStore& store);

// Numbers of later snapshots are larger than this one, which a snapshot of another copy of the
// store has.
// Durable on return.
void pass_snapshot_order(PackStore& store, std::uint64_t order);

// For use after refs were written with numbers of their own: the next claim looks at all refs.
void forget_snapshot_order(PackStore& store);

}  // namespace vellum::store
