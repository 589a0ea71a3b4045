// store/branch/staging_branch.hpp: a branch that gets its content before anybody sees its name.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/branch/branch_writer.hpp"
#include "store/catalog/lock/name_lock.hpp"

namespace vellum::store {

// Owns a branch with a reserved name (store/catalog/names.hpp) and its lock. Without the lock,
// gc takes the branch for a leftover of a crash. The destructor removes it.
class StagingBranch {
 public:
  StagingBranch(StoreDirectory& store, const format::Version& version,
                const std::optional<format::Encoding>& encoding);
  ~StagingBranch();
  StagingBranch(const StagingBranch&) = delete;
  StagingBranch& operator=(const StagingBranch&) = delete;

  BranchWriter& writer() noexcept { return *writer_; }
  // Makes the writer's head the branch of this name, with the id and packs of the one aside, which
  // is gone then. REQUIRES: the last commit was a checkpoint.
  void publish(const NameLock& claim);

 private:
  void make(const format::Version& version, const std::optional<format::Encoding>& encoding);
  void drop() noexcept;

  StoreDirectory& store_;
  const std::optional<format::Encoding> encoding_;
  std::string name_;
  std::unique_ptr<BranchWriter> writer_;
};

}  // namespace vellum::store
