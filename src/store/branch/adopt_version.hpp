// store/branch/adopt_version.hpp: a version from another store becomes the head of a branch.
#pragma once

#include <cstdint>
#include <string>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The identity of a head, to detect that it has changed.
struct SeenHead {
  std::uint64_t branch_id = 0, sequence = 0;
  std::int64_t time_ns = 0;
  bool operator==(const SeenHead&) const = default;
};
SeenHead seen_head(const JournalState& journal);

// Makes `version` the head of the branch, with a new epoch of its journal. False: the branch's head
// is not `seen` any more. Errc::busy: the branch has a writer. REQUIRES: the records that the version
// needs are durable, and the caller keeps them from gc.
bool adopt_version(StoreDirectory& store, const std::string& branch, const SeenHead& seen,
                   const format::Version& version);

}  // namespace vellum::store
