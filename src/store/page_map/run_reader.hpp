// store/page_map/run_reader.hpp: access to the page map's sorted runs.
#pragma once

#include <memory>
#include <vector>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// A run's root, checked against `ref`. The packs that it names need not exist. Throws
// Errc::corrupted.
format::RunRoot read_run_root(PackStore& store, const format::RunRef& ref);

// The same, and opens the packs that the root names. Versions that are open at the same time share the
// result. Throws Errc::corrupted.
std::shared_ptr<const LoadedRun> load_run(PackStore& store, const format::RunRef& ref);

// Looks up one block of a run, and checks that the root describes it. False: `failure` has the reason,
// but not the page. Allocates nothing: the fault handler calls it.
bool get_block(RecordCache& records, const LoadedRun& run, std::size_t block,
               RecordCache::View& view, ReadFailure& failure) noexcept;

// The entries of one block: at most 1024. Throws Errc::corrupted, naming the place.
std::vector<format::MapEntry> read_block(PackStore& store, const LoadedRun& run, std::size_t block);

// All entries of a run, in order.
std::vector<format::MapEntry> read_entries(PackStore& store, const LoadedRun& run);

// All entries of each run, read by the threads of the store's pool. REQUIRES: the caller is not one of
// them.
std::vector<std::vector<format::MapEntry>> read_all_entries(
    PackStore& store, std::span<const std::shared_ptr<const LoadedRun>> runs);

}  // namespace vellum::store
