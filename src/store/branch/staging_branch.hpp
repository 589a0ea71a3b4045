// store/branch/staging_branch.hpp: a branch that is filled before its name is published.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "store/branch/branch_writer.hpp"
#include "store/catalog/lock/name_lock.hpp"

namespace vellum::store {

// Owns a branch with a reserved name (store/catalog/names.hpp) and its lock. gc treats such a
// branch without a lock as a leftover of a crash. The destructor removes the branch, unless it is
// kept.
class StagingBranch {
 public:
  // Errc::busy: another process keeps the store or each new branch locked.
  StagingBranch(StoreDirectory& store, const format::Version& version,
                const std::optional<format::Encoding>& encoding);
  // The branch that an earlier process has kept for this version, with what that process has
  // written to it; without one, a branch at this version, with the packs of one that was kept for an
  // earlier version. It is kept until remove() or gc. If another process has it, a new branch that is
  // not kept.
  static std::unique_ptr<StagingBranch> kept(StoreDirectory& store, const format::Version& version,
                                             const std::optional<format::Encoding>& encoding);
  // Removes a branch that is kept for this version, but cannot go on. Without one, moves a branch that
  // is kept for an earlier version to this version.
  static void move_kept(StoreDirectory& store, const format::Version& version,
                        const std::optional<format::Encoding>& encoding);
  // Removes what was kept for other versions of the branch. An empty version: for all of them.
  static void remove_kept(StoreDirectory& store, std::uint64_t branch_id,
                          const format::Version& version);
  ~StagingBranch();
  StagingBranch(const StagingBranch&) = delete;
  StagingBranch& operator=(const StagingBranch&) = delete;

  BranchWriter& writer() noexcept { return *writer_; }
  // Publishes the writer's head as the branch of the claimed name, which takes over id and packs of
  // the staging branch. The staging branch is removed. REQUIRES: the last commit was a checkpoint,
  // and publish() has not been called.
  void publish(const NameLock& claim);
  // Removes the branch, although it is kept.
  void remove() noexcept { drop(); }

 private:
  StagingBranch(StoreDirectory& store, const format::Version& version,
                const std::optional<format::Encoding>& encoding, std::string kept_name);
  void create(const format::Version& version, const std::optional<format::Encoding>& encoding,
              std::chrono::steady_clock::time_point last_try);
  void drop() noexcept;

  StoreDirectory& store_;
  const std::optional<format::Encoding> encoding_;
  std::string name_;
  bool is_kept_ = false;
  std::unique_ptr<BranchWriter> writer_;
};

}  // namespace vellum::store
