// group/partition_memory.hpp: a partition that is open for writing: its memory and its commits.
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
  // Commits and creates a snapshot of that name (Region::snapshot()).
  virtual CommitReport snapshot(const std::string& name, const std::string& message) = 0;
  virtual std::future<CommitReport> snapshot_async(const std::string& name,
                                                   const std::string& message) = 0;
  // Discards the changes since the last commit, and then restores the content of `version`, a
  // snapshot of the branch; empty: keeps the last commit.
  virtual void rollback(const std::string& version) = 0;
  virtual void close() = 0;
};

// Opens the partitions of a job: regions in stores (region_partition.hpp), or a test's.
class PartitionOpener {
 public:
  virtual ~PartitionOpener() = default;
  // Errc::not_found: no store exists and `may_create` is false.
  virtual std::shared_ptr<store::StoreDirectory> open_store(std::uint32_t partition,
                                                            bool may_create) = 0;
  // REQUIRES: the branch does not exist.
  virtual void create_branch(store::StoreDirectory& store, std::uint32_t partition) = 0;
  // Takes the branch's lock. Errc::busy: it has a writer.
  virtual std::unique_ptr<PartitionMemory> open_branch(
      const std::shared_ptr<store::StoreDirectory>& store, std::uint32_t partition) = 0;
};

}  // namespace vellum::group
