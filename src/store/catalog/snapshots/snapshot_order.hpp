// store/catalog/snapshots/snapshot_order.hpp: the order in which snapshots were created,
// independent of the clock.
#pragma once

#include <cstdint>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// A number for a new snapshot, larger than that of every earlier one. Durable on return: it is used
// only once, even if the snapshot is never created.
std::uint64_t claim_snapshot_order(PackStore& store);

// Makes the numbers of later snapshots larger than `order`, the number of a snapshot of another
// copy of the store. Durable on return.
void pass_snapshot_order(PackStore& store, std::uint64_t order);

// Called after refs were written with their own numbers: the next claim reads all refs.
void forget_snapshot_order(PackStore& store);

}  // namespace vellum::store
