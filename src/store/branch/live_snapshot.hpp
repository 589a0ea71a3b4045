// store/branch/live_snapshot.hpp: a snapshot of a branch in use, taken without its writer.
#pragma once

#include <string>

#include "store/catalog/store_core.hpp"

namespace vellum::store {

// Publishes the branch's last commit under the claimed name, from any process. The journal belongs
// to the writer alone, so commits that only the journal holds are written once more, into packs of
// a branch aside that exists only for this time. After a crash, gc removes that branch. Errors:
// those of reading and writing.
void snapshot_of_live(StoreCore& store, const std::string& branch, const NameLock& claim,
                      const std::string& message);

}  // namespace vellum::store
