// store/branch/rename_branch.hpp: gives a branch another name.
#pragma once

#include <string>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The branch `to` has the head of `from`, which is removed. Snapshots keep the name of the branch
// that they were made of. A crash may leave both names, with the same content. Errc::not_found: no
// branch `from`; busy: it has a writer; the errors of claim_name() for `to`.
void rename_branch(StoreDirectory& store, const std::string& from, const std::string& to);

}  // namespace vellum::store
