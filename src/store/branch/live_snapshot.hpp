// store/branch/live_snapshot.hpp: a snapshot of a branch whose writer is at work, by somebody else.
#pragma once

#include <string>

#include "store/catalog/store_core.hpp"

namespace vellum::store {

// Keeps what the branch's last commit is under the name that is claimed, from any process. The
// writer's journal is the writer's alone, so what only that holds is written once more: into packs
// of a branch aside that is there for so long. What a crash leaves of it is gc's to remove. Errors:
// what reading and writing throws.
void snapshot_of_live(StoreCore& store, const std::string& branch, const NameLock& claim,
                      const std::string& message);

}  // namespace vellum::store
