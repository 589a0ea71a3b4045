// group/mpi/datastore_partition.hpp: partitions that are datastores of memory managers
// (vellum/datastore.hpp).
#pragma once

#include <functional>
#include <string>

#include "group/partition_memory.hpp"

namespace vellum::mpi {

// The functions of a memory manager; paths are those of Datastore.
struct DatastoreCalls {
  std::function<void(const std::string& path)> create;  // and commits; leaves it open
  std::function<void(const std::string& path)> open;
  std::function<CommitReport(const std::string& path)> snapshot;
  std::function<void()> close;
};

// A partition for each rank: ROOT/subdir-N.
class DatastorePartitions final : public group::PartitionOpener {
 public:
  // `may_create`: if the group has no version yet, its datastores are created.
  DatastorePartitions(std::string root, DatastoreCalls calls, bool may_create)
      : root_(std::move(root)), calls_(std::move(calls)), may_create_(may_create) {}

  std::shared_ptr<store::StoreDirectory> open_store(std::uint32_t partition,
                                                    bool may_create) override;
  void create_branch(store::StoreDirectory& store, std::uint32_t partition) override;
  std::unique_ptr<group::PartitionMemory> open_branch(
      const std::shared_ptr<store::StoreDirectory>& store, std::uint32_t partition) override;

 private:
  const std::string root_;
  const DatastoreCalls calls_;
  const bool may_create_;
  bool is_open_ = false;
};

}  // namespace vellum::mpi
