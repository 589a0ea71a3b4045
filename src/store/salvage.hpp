// store/salvage.hpp: copies every version that is still whole out of a damaged store into a new
// one.
//
// The damaged store is only read. A version is saved when all of it reads and checks out; nothing
// is guessed and nothing is patched. What a damaged or missing name would have led to is looked for
// in the copies of versions that every fold leaves in the packs, and offered under the branch's own
// name, or as `recovered-<branch id>-<sequence>`. What has no name any more was removed, as far as
// anyone can tell: it is offered on request, and where a name is damaged that may have been its.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/store_core.hpp"
#include "store/verify.hpp"

namespace vellum::store {

struct SavedVersion {
  std::string name;  // in the new store
  bool is_branch = false;
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::string origin;  // "snapshot 'a'", "branch 'main'", or what it was recovered from
  bool exact = true;   // false: an older state than the one that was asked for, or one without a
                       // name of its own
};

struct LostVersion {
  std::string name;    // "snapshot 'a'", "branch 'main'"
  std::string reason;  // names file and offset
};

struct SalvageReport {
  std::vector<SavedVersion> saved;
  std::vector<LostVersion> lost;
  std::string destination;  // empty for a dry run
  std::uint64_t pages_written = 0;
};

enum class Removed { left_out, saved_too };

// Without `destination` a dry run: reads everything, writes nothing. Throws what stops all of it:
// the superblock is damaged, the destination exists or lies inside the store, the disk is full.
SalvageReport salvage_store(base::Fs& fs, const std::string& path,
                            const std::optional<std::string>& destination,
                            const ProgressFn& progress, Removed removed = Removed::left_out);

}  // namespace vellum::store
