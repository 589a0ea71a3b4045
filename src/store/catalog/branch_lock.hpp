// store/catalog/branch_lock.hpp: the lock of a branch, which its one writer holds, and who removes
// it.
#pragma once

#include <memory>
#include <string>

#include "store/pack/pack_store.hpp"

namespace vellum::store {

// The branch's journal, locked until the file is closed, and the one that has the name now. Null:
// somebody else has it locked. Errc::not_found names the branch.
std::unique_ptr<base::File> try_lock_branch(PackStore& store, const std::string& branch);

}  // namespace vellum::store
