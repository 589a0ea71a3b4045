// store/gc/gc.hpp: garbage collection, which frees space that no version needs.
//
// gc removes packs that no version names, and punches holes between the needed records of the
// others. On request it then rewrites the packs that no longer have a writer, to make them smaller
// (recompress.cpp). docs/decisions/garbage-collection.md gives the reasons, docs/format.md
// the order of writes.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vellum/report.hpp>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/reach/pack_use.hpp"

namespace vellum::store {

inline constexpr int kMaxRecompressLevel = 19;

// The pace of a gc that runs concurrently with the program that uses the store.
struct GcPace {
  std::chrono::milliseconds patience = kGcPatience;  // the timeout for locks
  bool flush_census = true;                          // the census survives a power cut
  // Called between steps, when only the lock of gc is held. An exception from it ends the gc.
  std::function<void()> between_steps;
  // Called likewise before punching about 1 MiB of a pack, and before removing a pack. A writer of
  // that file waits while the kernel does this. `freed_bytes`: the bytes freed until now.
  std::function<void(std::uint64_t freed_bytes)> before_change;
};

// Runs concurrently with readers and writers, in any process. `recompress_level`: zstd's, 1 to
// kMaxRecompressLevel; 0: no pack is rewritten. Frees nothing on Errc::busy (another gc runs, or
// another process holds the names past the timeout), corrupted (a ref, journal or page map cannot
// be read) and io (an archive is missing). Any other error may occur after part of the work. The
// store is then intact, and the next call continues.
GcReport collect_garbage(StoreDirectory& store, bool dry_run, const ProgressFn& progress,
                         int recompress_level = 0, const GcPace& pace = {});

// A part of gc: rewrites packs that no longer have a writer, with a higher compression level and
// without the slots that no version needs.
struct RecompressOptions {
  int level;              // zstd's, 1 to kMaxRecompressLevel
  const GcExclusive* gc;  // nullptr: a dry run
  const ProgressFn& progress;
};

// Rewrites the packs for which estimates promise to save a twentieth of the size, and a block.
// Throws Errc::corrupted with the offset, and Errc::busy if another process holds the names past the
// timeout. Packs rewritten before the error remain rewritten. REQUIRES: the live set has slots; the
// lock of gc or, in a dry run, NamesShared.
RecompressReport recompress_packs(StoreDirectory& store, const Roots& roots, LiveSet& live_set,
                                  const Needs& needs, const RecompressOptions& options);

}  // namespace vellum::store
