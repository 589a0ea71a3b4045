// store/gc/recompress.hpp: the recompression of packs, a part of gc.
//
// It rewrites packs that no longer have a writer, with a higher compression level and without the
// slots that no version needs.
#pragma once

#include <vellum/report.hpp>

#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/reach/pack_use.hpp"

namespace vellum::store {

inline constexpr int kMaxRecompressLevel = 19;

struct RecompressOptions {
  int level;  // zstd's, 1 to kMaxRecompressLevel
  const GcExclusive* gc;  // nullptr: a dry run
  const ProgressFn& progress;
};

// Rewrites the packs for which estimates promise to save a twentieth of the size, and a block.
// Throws Errc::corrupted with the offset, and Errc::busy if another process holds the names past
// the timeout. Packs rewritten before the error remain rewritten. REQUIRES: the live set has slots;
// in a dry run, NamesShared is held.
RecompressReport recompress_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, const RecompressOptions& options);

}  // namespace vellum::store
