// store/run_reader.hpp: a run of the page map, opened for reading: its root in memory, its blocks
// where they are.
#pragma once

#include <functional>
#include <vector>

#include "format/page_map.hpp"
#include "store/record_cache.hpp"

namespace vellum::store {

class StoreCore;

// Immutable, and shared by the versions that are open on a store (StoreCore::load_run).
struct LoadedRun {
  format::RunRef ref;
  format::RunRoot root;

  // The first block whose last page is `page` or later; root.blocks.size() when there is none.
  std::size_t block_from(format::PageNumber page) const noexcept;
  format::RecordRef block_ref(std::size_t block) const noexcept;
};

// Reads a root, checks it against `ref`, and opens the packs that it names. Throws Errc::damaged.
LoadedRun read_run(StoreCore& store, const format::RunRef& ref);

// The entries of one block: at most 1024. Throws Errc::damaged, naming the place.
std::vector<format::MapEntry> read_block(StoreCore& store, const LoadedRun& run, std::size_t block);

// All entries of a run, in order.
std::vector<format::MapEntry> read_entries(StoreCore& store, const LoadedRun& run);

}  // namespace vellum::store
