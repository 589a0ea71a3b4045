// store/check/verify.hpp: a check of everything that a store says it has.
#pragma once

#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Always checks superblock, refs, journals, run roots, map blocks, presence and headers of packs,
// and that every entry points inside its pack. With `read_data`, also reads every record that any
// version needs, verifies its checksum, decompresses it, and checks that every chain is whole down
// to its base or to zero; checks sealed packs against their index. Reports each corrupted object
// once, with the versions it hurts.
VerifyReport verify_store(StoreDirectory& store, bool read_data, const ProgressFn& progress);

}  // namespace vellum::store
