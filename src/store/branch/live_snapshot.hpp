// store/branch/live_snapshot.hpp: the head of a branch in use, taken without its writer.
#pragma once

#include <optional>
#include <string>

#include "store/branch/staging_branch.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// The last commit of a branch as a version in packs, from any process. The journal belongs to the
// writer alone, so commits that only the journal holds are written once more, into packs of a
// branch aside that exists only while this lives. After a crash, gc removes that branch. gc keeps
// what the version needs while this lives. Errors: those of reading and writing.
class HeadInPacks {
 public:
  HeadInPacks(StoreDirectory& store, const std::string& branch);

  const format::Version& version() const noexcept { return version_; }
  // As the journal had it.
  const ResolvedVersion& head() const noexcept { return kept_.version; }

 private:
  const KeptVersion kept_;
  std::optional<StagingBranch> aside_;
  format::Version version_;
};

// Publishes the head of `branch` as a snapshot of the claimed name. If `message` is empty, that of
// the commit stays.
void snapshot_of_live(StoreDirectory& store, const std::string& branch, const NameLock& claim,
                      const std::string& message);

}  // namespace vellum::store
