// memory/shared/share_name.hpp: the name under which the readers of a version share its pages.
#pragma once

#include <string>

#include "store/catalog/store_directory.hpp"
#include "store/page_map/resolved_version.hpp"

namespace vellum::region {

// Two readers get the same name only for the same content. It stands for the store's id and place, since a copy of a store goes on with the same ids, and for all that the
// version refers to: records have checksums, and so have references to them. Empty: the store's
// place is not known.
std::string share_name(const store::StoreDirectory& store, const store::ResolvedVersion& version);

}  // namespace vellum::region
