// group/remote/restore.hpp: restores lost stores from a group's remote.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "group/ranks.hpp"

namespace vellum::group {

struct RestoreOptions {
  std::string url;      // of the group's remote
  std::string records;  // the directory; created if it is lost. Only rank 0 uses it
  std::string version;  // a name or a number; empty: the newest complete version
  std::string stores;   // pattern; empty: the paths in the record
  // The partitions whose stores this rank can access; nullopt: its even share.
  std::optional<std::vector<std::uint32_t>> mine;
};

struct RestoreReport {
  std::uint64_t number = 0;           // of the new newest version
  std::uint64_t restored_number = 0;  // of the version in the remote
  std::string name;
  std::uint64_t partitions_fetched = 0;  // by all ranks
  std::uint64_t bytes_read = 0;
};

// Collective. Makes a version of the remote the newest of the group: partitions that lack it pull
// it from their remotes, missing stores are created, and then a record is published like that of a
// job. May be interrupted anywhere and repeated. Later versions without a name are superseded.
// Errc::not_found: the remote has no such version; busy: a job has the group open;
// invalid_argument: the directory has another group; already_exists: the path of a store is in use
// by something else. Each error names the partition.
RestoreReport restore_group(base::Fs& fs, Ranks& ranks, const RestoreOptions& options,
                            const ProgressFn& progress);

}  // namespace vellum::group
