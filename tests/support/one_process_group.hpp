// A group with three partitions, whose job is one process: tests of stores and records need no MPI.
#pragma once

#include <memory>
#include <string>

#include "group/job.hpp"
#include "group/region_partition.hpp"

namespace vellum::test {

class OneProcess {
 public:
  static constexpr std::uint64_t kPartitionBytes = 16u * 4096;

  // In the directory: `records`, store-0, store-1 and store-2.
  explicit OneProcess(const std::string& directory, const std::string& version = "",
                      const std::string& records = "records",
                      std::shared_ptr<group::RemoteVersions> remote = nullptr)
      : partitions_({directory + "/store-{}", "main", kPartitionBytes, {}, {}}) {
    group::JobOptions options;
    options.records = directory + "/" + records;
    options.partitions = 3;
    options.version = version;
    options.remote = std::move(remote);
    options.store_path = [=](std::uint32_t p) {
      return group::path_for_record(group::path_of_partition(directory + "/store-{}", p),
                                    directory + "/" + records);
    };
    job_ = std::make_unique<group::Job>(base::posix_fs(), ranks_, options, partitions_);
  }

  group::Job& job() { return *job_; }
  // The first word of a partition.
  std::uint64_t& word(std::uint32_t partition) {
    return group::region_of(job_->memory(partition)).root<std::uint64_t>();
  }
  void set(std::uint64_t value) {
    for (std::uint32_t p = 0; p < 3; ++p) word(p) = value;
  }

 private:
  group::OneRank ranks_;
  group::RegionPartitions partitions_;
  std::unique_ptr<group::Job> job_;
};

}  // namespace vellum::test
