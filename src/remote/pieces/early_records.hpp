// remote/pieces/early_records.hpp: the records that a version's readers need first: for its first
// pages, and for its working set.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "format/working_set.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The roots of the version's runs; and, if they are local and have at most `most_bytes`, the map
// blocks and records of its first pages. `needed` are the version's records; the result has their
// order. Errc::corrupted. REQUIRES: gc keeps the version.
std::vector<PieceRecord> opening_records(store::StoreDirectory& store,
                                         const format::Version& version,
                                         const std::vector<PieceRecord>& needed,
                                         std::uint64_t most_bytes);

// The pages of a recorded working set, in the order of first use, and their map blocks and records,
// in the order in which a reader needs them.
struct UsedRecords {
  std::vector<format::PageRange> pages;
  std::vector<PieceRecord> records;  // each once
};

// For the start of the set `recorded`, up to the limits of a list. `needed` are the version's
// records. Errc::corrupted. REQUIRES: `needed` ascends by reference; gc keeps the version.
UsedRecords used_records(store::StoreDirectory& store, const format::Version& version,
                         std::vector<format::PageRange> recorded,
                         const std::vector<PieceRecord>& needed);

}  // namespace vellum::remote
