// memory/shared/share_name.hpp: the name under which the readers of a version share its pages.
#pragma once

#include <string>

#include "store/catalog/store_directory.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::region {

// Two readers get the same name only for the same content. The name is a hash of the store's id and
// location, since a copy of a store continues with the same ids, and of all references of the
// version: records have checksums, and so have references to them. Empty: the store's location is
// unknown.
std::string share_name(const store::StoreDirectory& store, const store::ResolvedVersion& version);

}  // namespace vellum::region
