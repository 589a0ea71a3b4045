// store/catalog/branch_lock.hpp: the lock of a branch, for its one writer and for removing it.
#pragma once

#include <memory>
#include <string>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// The current journal of the branch, locked until the file is closed. Null: it is already locked.
// Errc::not_found names the branch.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch);

}  // namespace vellum::store
