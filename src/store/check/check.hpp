// store/check/check.hpp: readers of a whole store: repair, verify and stat.
#pragma once

#include <optional>
#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "base/files/file.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/check/repair_find.hpp"

namespace vellum::store {

// Copies the intact versions of a corrupted store to a new store.
//
// Repair only reads the corrupted store. It saves a version if all of its data can be read and
// verified. It guesses nothing and patches nothing. For a corrupted or missing name, it searches
// the copies of versions that checkpoints write to the packs. It saves a found version with the
// branch's own name or as `recovered-<branch id>-<sequence>`. A version without a name was
// presumably removed. Repair saves it on request, and if a corrupted name may have been its own.
//
// Without `destination`, this is a dry run: it reads everything and writes nothing. Throws only
// errors that stop all of the work: the superblock is corrupted, the destination exists or is
// inside the store, the disk is full.
RepairReport repair_store(base::Fs& fs, const std::string& path,
                          const std::optional<std::string>& destination, const ProgressFn& progress,
                          Removed removed = Removed::left_out);

// Checks the integrity of a store: always superblock, refs, journals, run roots, map blocks,
// presence and headers of packs, and that every entry points inside its pack. With `read_data`, also reads every record that a
// version needs, verifies its checksum, decompresses it, and checks that every chain is complete
// down to its base or to zero. It then also checks sealed packs against their index. Reports each
// corrupted object once, with the affected versions.
VerifyReport verify_store(StoreDirectory& store, bool read_data, const ProgressFn& progress);

// The distribution of a store's bytes.
StoreStat stat_store(StoreDirectory& store);

}  // namespace vellum::store
