// store/check/verify.hpp: looks at everything a store says it has.
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

// Always: superblock, refs, journals, run roots, map blocks, presence and headers of packs, and
// that every entry points inside its pack. With `read_data`: every record that any version needs is
// read, its checksum verified, decompressed, and every chain ends in a base; sealed packs are
// checked against their index. Each damaged object once, with the versions it hurts.
VerifyReport verify_store(StoreCore& store, bool read_data, const ProgressFn& progress);

}  // namespace vellum::store
