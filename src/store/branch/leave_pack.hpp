// store/branch/leave_pack.hpp: a branch gives up its active pack.
#pragma once

#include <cstdint>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// If the pack is the active pack of a branch, its next commit starts a new pack. No state after a
// power cut appends to this one either, so the caller may replace its file. Errc::busy: the branch
// has a writer. REQUIRES: the caller holds gc's locks.
void leave_pack(StoreDirectory& store, std::uint64_t pack);

}  // namespace vellum::store
