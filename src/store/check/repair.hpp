// store/check/repair.hpp: the rescue of a corrupted store's whole versions into a new store.
//
// Repair only reads the corrupted store. It saves a version if all of it reads and checks out; it
// guesses nothing and patches nothing. For a corrupted or missing name, it searches the copies of
// versions that every checkpoint leaves in the packs, and offers the version under the branch's own
// name or as `recovered-<branch id>-<sequence>`. A version without a name was presumably removed.
// It is offered on request, and where a corrupted name may have been its own.
#pragma once

#include <optional>
#include <string>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "store/check/repair_find.hpp"

namespace vellum::store {

// Without `destination`, this is a dry run: it reads everything and writes nothing. Throws only
// errors that stop everything: the superblock is corrupted, the destination exists or lies inside
// the store, the disk is full.
RepairReport repair_store(base::Fs& fs, const std::string& path,
                          const std::optional<std::string>& destination, const ProgressFn& progress,
                          Removed removed = Removed::left_out);

}  // namespace vellum::store
