// group/remote/restore.hpp: stores that are lost come back from a group's remote.
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
  std::string records;  // the directory; made if it is lost. Only rank 0 uses it
  std::string version;  // a name, or a number; empty: the newest that is complete there
  std::string stores;   // pattern; empty: as the record says
  // The partitions whose stores this rank reaches; nothing: its even share.
  std::optional<std::vector<std::uint32_t>> mine;
};

struct RestoreReport {
  std::uint64_t number = 0;           // of the version that is the newest now
  std::uint64_t restored_number = 0;  // of the version in the remote
  std::string name;
  std::uint64_t partitions_fetched = 0;  // by all ranks
  std::uint64_t bytes_read = 0;
};

// Collective. Makes a version of the remote the newest of the group: partitions that lack it get it
// from their remotes, a store that is not there is made, and then a record is published as that of a
// job. It may be cut off anywhere, and done again. Later versions without a name are superseded.
// Errc::not_found: the remote has no such version; busy: a job has the group open;
// invalid_argument: another group is there; already_exists: something that is no store has the path
// of one. Each error names the partition.
RestoreReport restore_group(base::Fs& fs, Ranks& ranks, const RestoreOptions& options,
                            const ProgressFn& progress);

}  // namespace vellum::group
