// group/region_partition.hpp: partitions that are regions of stores.
#pragma once

#include <string>
#include <vellum/store.hpp>

#include "group/partition_memory.hpp"

namespace vellum::group {

// The path of a partition: its number replaces each "{}" in the pattern.
std::string path_of_partition(const std::string& pattern, std::uint32_t partition);
// The path in a record: relative to the directory of records if the store is in it or in its
// parent, so that all can be moved together; otherwise absolute.
std::string path_for_record(const std::string& store, const std::string& records);
// The path of the store in a record.
std::string path_from_record(const std::string& path, const std::string& records);

struct RegionPartitionOptions {
  std::string store;  // pattern
  std::string branch;
  std::uint64_t region_bytes = 0;  // of a new partition
  StoreOptions new_store;
  RegionOptions region;
};

class RegionPartitions final : public PartitionOpener {
 public:
  // Errc::invalid_argument: options that a group's regions cannot have.
  explicit RegionPartitions(RegionPartitionOptions options);
  std::shared_ptr<store::StoreDirectory> open_store(std::uint32_t partition,
                                                    bool may_create) override;
  void create_branch(store::StoreDirectory& store, std::uint32_t partition) override;
  std::unique_ptr<PartitionMemory> open_branch(const std::shared_ptr<store::StoreDirectory>& store,
                                               std::uint32_t partition) override;

 private:
  const RegionPartitionOptions options_;
};

// The region of a partition. REQUIRES: RegionPartitions has opened it.
Region& region_of(PartitionMemory& memory);

}  // namespace vellum::group
