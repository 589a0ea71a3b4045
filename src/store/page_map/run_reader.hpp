// store/page_map/run_reader.hpp: access to the page map's sorted runs.
#pragma once

#include <memory>
#include <vector>

#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

// A run's root, checked against `ref`. The packs that it names need not be there. Throws
// Errc::corrupted.
format::RunRoot read_run_root(PackStore& store, const format::RunRef& ref);

// The same. The packs that it names are open afterwards. Versions that
// are open at the same time share it. Throws Errc::corrupted.
std::shared_ptr<const LoadedRun> load_run(PackStore& store, const format::RunRef& ref);

// Looks up one block of a run, which the root must describe. False: `failure` says why, but for the page.
// Allocates nothing, as the fault handler comes here.
bool get_block(RecordCache& records, const LoadedRun& run, std::size_t block,
               RecordCache::View& view, ReadFailure& failure) noexcept;

// The entries of one block: at most 1024. Throws Errc::corrupted, naming the place.
std::vector<format::MapEntry> read_block(PackStore& store, const LoadedRun& run, std::size_t block);

// All entries of a run, in order.
std::vector<format::MapEntry> read_entries(PackStore& store, const LoadedRun& run);

// All entries of each run, read by all threads of the store's pool. REQUIRES: the caller is none of
// them.
std::vector<std::vector<format::MapEntry>> read_all_entries(
    PackStore& store, std::span<const std::shared_ptr<const LoadedRun>> runs);

}  // namespace vellum::store
