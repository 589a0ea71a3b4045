// store/check/repair.hpp: copies the intact versions of a corrupted store to a new store.
//
// Repair only reads the corrupted store. It saves a version if all of its data can be read and
// verified. It guesses nothing and patches nothing. For a corrupted or missing name, it searches
// the copies of versions that checkpoints write to the packs. It saves a found version with the
// branch's own name or as `recovered-<branch id>-<sequence>`. A version without a name was
// presumably removed. Repair saves it on request, and if a corrupted name may have been its own.
#pragma once

#include <optional>
#include <string>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "store/check/repair_find.hpp"

namespace vellum::store {

// Without `destination`, this is a dry run: it reads everything and writes nothing. Throws only
// errors that stop all of the work: the superblock is corrupted, the destination exists or is
// inside the store, the disk is full.
RepairReport repair_store(base::Fs& fs, const std::string& path,
                          const std::optional<std::string>& destination, const ProgressFn& progress,
                          Removed removed = Removed::left_out);

}  // namespace vellum::store
