// store/branch/adopt_version.hpp: a branch that gets a version which was made elsewhere.
#pragma once

#include <cstdint>
#include <string>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// A head as it was seen.
struct SeenHead {
  std::uint64_t branch_id = 0, sequence = 0;
  std::int64_t time_ns = 0;
  bool operator==(const SeenHead&) const = default;
};
SeenHead seen_head(const JournalState& journal);

// Makes `version` the head of the branch, by a new epoch of its journal. False: the branch's head is
// no longer the one that was seen. Errc::busy: it has a writer. REQUIRES: what the version needs is
// in packs, durable, and kept from gc.
bool adopt_version(StoreDirectory& store, const std::string& branch, const SeenHead& seen,
                   const format::Version& version);

}  // namespace vellum::store
