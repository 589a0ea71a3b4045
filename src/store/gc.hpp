// store/gc.hpp: gives back the space of what no version needs.
//
// Packs that nothing names are removed; in the others, holes are punched between the records that
// are needed. On request, packs that nobody writes any more are then written again, smaller
// (store/recompress.hpp). docs/design.md says why, docs/format.md the order of calls.
#pragma once

#include <string>

#include "store/recompress.hpp"
#include "store/store_core.hpp"
#include "store/verify.hpp"

namespace vellum::store {

struct GcReport {
  std::uint64_t snapshots = 0, branches = 0;  // whose data stays
  std::uint64_t kept_open = 0;                // versions that someone has open, removed or not
  std::uint64_t packs = 0;                    // that were there
  std::uint64_t packs_removed = 0, packs_punched = 0;
  std::uint64_t copies_removed = 0;   // from caches: of packs that are gone or were written again
  std::uint64_t allocated_bytes = 0;  // of all packs, before
  std::uint64_t needed_bytes = 0;     // of them, record by record
  std::uint64_t freeable_bytes = 0;   // whole blocks that nothing needs
  std::uint64_t freed_bytes = 0;      // of them; 0 when only looking
  bool holes_supported = true;        // false: only whole packs could go
  RecompressReport recompressed;      // counted apart from the rest
};

// Errc::busy: another gc runs, or someone holds the names for long. Errc::damaged: a ref, journal
// or page map does not read, io: an archive is not there; nothing is freed then. Any other error
// comes after part of the work: the store is whole, and the next call goes on. Beside readers and
// writers, in any process. `recompress_level`: zstd's, 1 to kMaxRecompressLevel; 0: nothing is
// written again.
GcReport collect_garbage(StoreCore& store, bool look_only, const ProgressFn& progress,
                         int recompress_level = 0);

}  // namespace vellum::store
