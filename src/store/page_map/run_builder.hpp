// store/page_map/run_builder.hpp: sorted runs of the page map, written and merged.
//
// The page map of a version is a handful of runs, newest first, like the levels of a log-structured
// merge tree (O'Neil et al., 1996). A checkpoint adds one run of its changes, and merges the newest
// runs when several have similar sizes. A version therefore costs only its changes, a lookup searches
// few runs, and snapshots share all older runs.
#pragma once

#include <span>
#include <vector>

#include "format/wire/types.hpp"
#include "store/packs/encode/encoding_threads.hpp"
#include "store/packs/record/pack_writer.hpp"
#include "store/page_map/page_source.hpp"

namespace vellum::store {

// This many runs within kTierFactor of each other are merged.
inline constexpr std::size_t kRunsPerTier = 4;
inline constexpr std::uint64_t kTierFactor = 4;
inline constexpr std::size_t kMaxRuns = 24;

// Writes map blocks, encoded by `threads`, and a root. REQUIRES: entries in run order
// (format/records/page_map.hpp), not empty.
format::RunRef write_run(PackWriter& packs, EncodingThreads& threads,
                         std::span<const format::MapEntry> entries);

// How many of the newest runs to merge into one; 0 or 1: none.
std::size_t runs_to_merge(std::span<const format::RunRef> runs) noexcept;

// Merges the newest runs of a version. A base or zero hides all entries of its page in older runs.
// Overlapping extents are split. With `oldest`, which means that no older run remains, zero entries
// are dropped: they hide nothing.
std::vector<format::MapEntry> merge_runs(
    const std::vector<std::vector<format::MapEntry>>& runs_newest_first, bool oldest);

}  // namespace vellum::store
