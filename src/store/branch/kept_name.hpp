// store/branch/kept_name.hpp: the names of the staging branches that pushes keep.
#pragma once

#include <string>
#include <vector>

#include "format/version.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Of the branch that is kept for this version, the base of a branch's journal.
std::string kept_name(const format::Version& version);
// The branches that are kept for any version of the branch.
std::vector<std::string> kept_names(const StoreDirectory& store, std::uint64_t branch_id);

}  // namespace vellum::store
