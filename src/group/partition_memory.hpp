// group/partition_memory.hpp: a partition that is open to write: its memory and its commits.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vellum/region.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::group {

class PartitionMemory {
 public:
  virtual ~PartitionMemory() = default;
  // Commits, and keeps that state under the name (Region::snapshot()).
  virtual CommitReport snapshot(const std::string& name, const std::string& message) = 0;
  virtual std::future<CommitReport> snapshot_async(const std::string& name,
                                                   const std::string& message) = 0;
  // Forgets what was stored since the last commit, and then makes the memory that of `version`, a
  // snapshot of the branch; empty: the last commit is what is wanted.
  virtual void rollback(const std::string& version) = 0;
  virtual void close() = 0;
};

// How a job opens its partitions: regions in stores (region_partition.hpp), or a test's.
class PartitionOpener {
 public:
  virtual ~PartitionOpener() = default;
  // Errc::not_found when there is no store and none may be made.
  virtual std::shared_ptr<store::StoreDirectory> open_store(std::uint32_t partition,
                                                            bool may_create) = 0;
  // Makes a branch that is not there.
  virtual void create_branch(store::StoreDirectory& store, std::uint32_t partition) = 0;
  // Takes the branch's lock: Errc::busy when it has a writer.
  virtual std::unique_ptr<PartitionMemory> open_branch(
      const std::shared_ptr<store::StoreDirectory>& store, std::uint32_t partition) = 0;
};

}  // namespace vellum::group
