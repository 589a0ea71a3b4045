// store/gc/recompress.hpp: writes packs again that nobody writes any more: compressed harder, and
// without what no version needs inside of their records. A part of gc.
#pragma once

#include "store/catalog/progress.hpp"
#include "store/reach/pack_use.hpp"

namespace vellum::store {

struct RecompressReport {
  std::uint64_t packs = 0;         // written again; of a dry run: that would be
  std::uint64_t bytes_before = 0;  // that they took
  std::uint64_t bytes_after = 0;   // and take now; of a dry run: about, from samples
  std::uint64_t packs_in_use = 0;  // left alone: someone has a version open whose mark is on them
};

inline constexpr int kMaxRecompressLevel = 19;

// A pack is written again when that is to save a twentieth of what it takes, and a block. Throws
// Errc::damaged, naming the place, and Errc::busy when someone holds the names for long; packs done
// by then stay done. REQUIRES: the census was made for slots; the lock of gc, or, to look only,
// that names are held.
RecompressReport recompress_packs(StoreCore& store, const Roots& roots, Census& census,
                                  const Needs& needs, int level, bool look_only,
                                  const ProgressFn& progress);

}  // namespace vellum::store
