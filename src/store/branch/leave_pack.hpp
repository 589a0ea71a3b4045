// store/branch/leave_pack.hpp: a branch goes on in another pack than its active one.
#pragma once

#include <cstdint>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Does nothing for a pack that no branch goes on writing. Else the branch's next commit begins a new
// pack, and no power cut leads back to this one: it may be written again. Errc::busy: the branch has
// a writer. REQUIRES: the caller holds what gc holds.
void leave_pack(StoreDirectory& store, std::uint64_t pack);

}  // namespace vellum::store
