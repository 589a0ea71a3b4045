// store/branch/checkpointed_head.hpp: the head of a branch in use as a version in packs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/branch/staging_branch.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// Heads of one branch that are taken one after the other, also by several processes. Each has the
// records of the one before and, besides them, only what has changed since, until a gc of the store.
// The branch's own checkpoint continues from these records (store/branch/staged_commits.hpp).
class FollowedBranch {
 public:
  // A staging branch that starts at the branch's checkpoint; the same one as before, if the
  // checkpoint is. Otherwise it continues the packs of the one before.
  StagingBranch& staging(StoreDirectory& store, const ResolvedVersion& head);
  // The branch has no commits since its checkpoint: a branch that this object or an earlier process
  // keeps moves there, with its packs. If that fails, it is removed.
  void rest(StoreDirectory& store, const ResolvedVersion& head);
  void end();

 private:
  std::unique_ptr<StagingBranch> staging_;
  format::Version checkpoint_;
};

// The last commit of a branch as a version that only packs hold. Any process may take it, also while
// the branch has a writer. Only the writer may write the journal, so commits that only the journal
// holds are written again, to packs of a staging branch that exists as long as this object. After a
// crash, gc removes that branch. gc frees nothing that the version needs during that time. Throws
// the errors of reading and writing.
class CheckpointedHead {
 public:
  // REQUIRES: `followed`, unless it is null, outlives this object, is always used for this branch,
  // and for one head at a time.
  CheckpointedHead(StoreDirectory& store, const std::string& branch,
                   FollowedBranch* followed = nullptr);

  const format::Version& version() const noexcept { return version_; }
  // As the journal had it.
  const ResolvedVersion& head() const noexcept { return kept_.version; }
  // Whether the version is the head of a staging branch of this object.
  bool is_staged() const noexcept { return staging_.has_value(); }

 private:
  const KeptVersion kept_;
  std::optional<StagingBranch> staging_;  // none: it is the followed branch's
  format::Version version_;
};

// Publishes a version as a snapshot of the claimed name, at the current time; signed, if this process
// signs. An empty `message` keeps its own. `is_staged`: it is the head of a staging branch, and need
// not be kept by the lock of names. Throws the errors of BranchWriter::sign().
void name_version(StoreDirectory& store, const NameLock& claim, const std::string& branch,
                  const format::Version& version, const std::string& message,
                  bool is_staged = false);

// The same for a snapshot that exists only for a moment: without a signature, also where the branch
// wants one.
void name_live_branch_for_now(StoreDirectory& store, const std::string& branch,
                              const NameLock& claim);

// Publishes the head of `branch`, or a commit of a branch (store/catalog/commit_name.hpp), as a
// snapshot of the claimed name. An empty `message` keeps that of the commit.
void snapshot_live_branch(StoreDirectory& store, const std::string& branch, const NameLock& claim,
                          const std::string& message);

}  // namespace vellum::store
