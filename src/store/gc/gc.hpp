// store/gc/gc.hpp: gives back the space of what no version needs.
//
// Packs that nothing names are removed; in the others, holes are punched between the records that
// are needed. On request, packs that nobody writes any more are then written again, smaller
// (store/gc/recompress.hpp). docs/decisions/garbage-collection.md says why, docs/format.md the
// order of calls.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "store/catalog/progress.hpp"
#include "store/catalog/store_core.hpp"
#include "store/gc/recompress.hpp"
#include "store/lock/lease.hpp"

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

// How a gc goes about it beside the program whose store it is.
struct GcPace {
  std::chrono::milliseconds patience = kGcPatience;  // for the others' locks
  bool flush_census = true;                          // what it found out is to outlast a power cut
  // Called between steps, with no lock held but that of gc; what it throws ends the gc.
  std::function<void()> between_steps;
  // The same, before each MiB or so that is taken out of a pack, and before a pack goes as a whole:
  // whoever writes there waits while the kernel does it. `freed_bytes`: so far.
  std::function<void(std::uint64_t freed_bytes)> before_change;
};

// Errc::busy: another gc runs, or someone holds the names for long. Errc::damaged: a ref, journal
// or page map does not read, io: an archive is not there; nothing is freed then. Any other error
// comes after part of the work: the store is whole, and the next call goes on. Beside readers and
// writers, in any process. `recompress_level`: zstd's, 1 to kMaxRecompressLevel; 0: nothing is
// written again.
GcReport collect_garbage(StoreCore& store, bool look_only, const ProgressFn& progress,
                         int recompress_level = 0, const GcPace& pace = {});

}  // namespace vellum::store
