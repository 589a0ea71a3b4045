// store/check/verify.hpp: checks the integrity of a store.
#pragma once

#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Always checks superblock, refs, journals, run roots, map blocks, presence and headers of packs,
// and that every entry points inside its pack. With `read_data`, also reads every record that a
// version needs, verifies its checksum, decompresses it, and checks that every chain is complete
// down to its base or to zero. It then also checks sealed packs against their index. Reports each
// corrupted object once, with the affected versions.
VerifyReport verify_store(StoreDirectory& store, bool read_data, const ProgressFn& progress);

}  // namespace vellum::store
