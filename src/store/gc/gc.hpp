// store/gc/gc.hpp: garbage collection: the release of space that no version needs.
//
// gc removes packs that nothing names, and punches holes between the needed records of the others.
// On request it then rewrites the packs that no longer have a writer, to make them smaller
// (store/gc/recompress.hpp). docs/decisions/garbage-collection.md gives the reasons, docs/format.md
// the order of calls.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vellum/report.hpp>

#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/store_directory.hpp"
#include "store/gc/recompress.hpp"

namespace vellum::store {

// The pace of a gc that runs beside the program that uses the store.
struct GcPace {
  std::chrono::milliseconds patience = kGcPatience;  // how long to wait for others' locks
  bool flush_live_set = true;                        // its saved live set outlasts a power cut
  // Called between steps, when only the lock of gc is held. An exception from it ends the gc.
  std::function<void()> between_steps;
  // Called likewise before each MiB or so is taken out of a pack and before a whole pack goes: a
  // writer of that file waits while the kernel does it. `freed_bytes`: the bytes freed so far.
  std::function<void(std::uint64_t freed_bytes)> before_change;
};

// Runs beside readers and writers, in any process. `recompress_level`: zstd's, 1 to
// kMaxRecompressLevel; 0: nothing is written again. Nothing is freed on Errc::busy (another gc
// runs, or the names are held elsewhere for long), corrupted (a ref, journal or page map cannot be
// read) and io (an archive is missing). Any other error comes after part of the work: the store is
// whole, and the next call goes on.
GcReport collect_garbage(StoreDirectory& store, bool dry_run, const ProgressFn& progress,
                         int recompress_level = 0, const GcPace& pace = {});

}  // namespace vellum::store
