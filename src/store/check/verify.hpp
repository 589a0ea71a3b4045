// store/check/verify.hpp: a check of everything that a store says it has.
#pragma once

#include <string>
#include <vector>

#include "store/catalog/progress.hpp"
#include "store/catalog/store_core.hpp"

namespace vellum::store {

struct Damage {
  std::string object;  // file path, with offset where a record is meant
  std::string reason;
  std::vector<std::string> versions;  // labels of the versions that need it; empty: none does
};

struct VerifyReport {
  std::uint64_t versions = 0, packs = 0, records = 0, bytes_read = 0;
  std::vector<Damage> damages;
};

// Always checks superblock, refs, journals, run roots, map blocks, presence and headers of packs,
// and that every entry points inside its pack. With `read_data`, also reads every record that any
// version needs, verifies its checksum, decompresses it, and checks that every chain is whole down
// to its base or to zero; checks sealed packs against their index. Reports each corrupted object
// once, with the versions it hurts.
VerifyReport verify_store(StoreCore& store, bool read_data, const ProgressFn& progress);

}  // namespace vellum::store
