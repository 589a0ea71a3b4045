// store/live_snapshot.hpp: a snapshot of a branch whose writer is at work, by somebody else.
#pragma once

#include <string>

#include "store/store_core.hpp"

namespace vellum::store {

// Keeps what the branch's last commit is under `name`, from any process. The writer's journal is
// the writer's alone, so what only that holds is written once more: into packs of a branch that is
// there for so long (named vellum-snapshot-*; a crash may leave it, and nothing else). Errors:
// already_exists, what reading and writing throws.
void snapshot_of_live(StoreCore& store, const std::string& branch, const std::string& name,
                      const std::string& message);

}  // namespace vellum::store
