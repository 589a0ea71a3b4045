// store/check/salvage.hpp: copies every version that is still whole out of a damaged store into a
// new one.
//
// The damaged store is only read. A version is saved when all of it reads and checks out; nothing
// is guessed and nothing is patched. What a damaged or missing name would have led to is looked for
// in the copies of versions that every fold leaves in the packs, and offered under the branch's own
// name, or as `recovered-<branch id>-<sequence>`. What has no name any more was removed, as far as
// anyone can tell: it is offered on request, and where a name is damaged that may have been its.
#pragma once

#include <optional>
#include <string>

#include "base/file.hpp"
#include "store/catalog/progress.hpp"
#include "store/check/salvage_report.hpp"

namespace vellum::store {

// Without `destination` a dry run: reads everything, writes nothing. Throws what stops all of it:
// the superblock is damaged, the destination exists or lies inside the store, the disk is full.
SalvageReport salvage_store(base::Fs& fs, const std::string& path,
                            const std::optional<std::string>& destination,
                            const ProgressFn& progress, Removed removed = Removed::left_out);

}  // namespace vellum::store
