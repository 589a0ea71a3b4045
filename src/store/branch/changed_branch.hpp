// store/branch/changed_branch.hpp: changes of a branch that has no writer: a head from another store,
// another name, no active pack. Each locks the journal; Errc::busy: the branch has a writer.
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
// is not `seen` any more. REQUIRES: the records that the version needs are durable, and the caller
// keeps them from gc.
bool adopt_version(StoreDirectory& store, const std::string& branch, const SeenHead& seen,
                   const format::Version& version);

// The branch `to` has the head of `from`, which is removed. Snapshots keep the name of the branch
// that they were made of. A crash may leave both names, with the same content. Errc::not_found: no
// branch `from`; and the errors of claim_name() for `to`.
void rename_branch(StoreDirectory& store, const std::string& from, const std::string& to);

// If the pack is the active pack of a branch, its next commit starts a new pack. No state after a
// power cut appends to this one either, so the caller may replace its file. REQUIRES: the caller
// holds gc's locks.
void leave_pack(StoreDirectory& store, std::uint64_t pack);

}  // namespace vellum::store
