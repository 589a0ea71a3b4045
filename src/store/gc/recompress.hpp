// store/gc/recompress.hpp: the recompression of packs, a part of gc.
//
// It rewrites packs that no longer have a writer, compressed harder and without the slots of their
// records that no version needs.
#pragma once

#include <vellum/report.hpp>

#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/reach/pack_use.hpp"

namespace vellum::store {

inline constexpr int kMaxRecompressLevel = 19;

// Writes a pack again if that promises to save a twentieth of its size, and a block. Throws
// Errc::corrupted, naming the place, and Errc::busy if the names are held elsewhere for long; packs
// done by then stay done. `gc`: nullptr for a dry run. REQUIRES: the live set was made for slots; in a
// dry run, NamesShared is held.
RecompressReport recompress_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, int level, const GcExclusive* gc,
                                  const ProgressFn& progress);

}  // namespace vellum::store
