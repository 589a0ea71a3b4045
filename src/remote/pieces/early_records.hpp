// remote/pieces/early_records.hpp: the records of a version that its readers need early: for its
// first pages, and for the pages that its last use touched.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "format/working_set.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_directory.hpp"

namespace vellum::remote {

// The roots of the version's runs; and, if they are here and take no more than `most_bytes`, the
// map blocks and records that its first pages need. Out of `needed`, its records, in the same order.
// Errc::corrupted. REQUIRES: gc keeps the version.
std::vector<PieceRecord> opening_records(store::StoreDirectory& store,
                                         const format::Version& version,
                                         const std::vector<PieceRecord>& needed,
                                         std::uint64_t most_bytes);

// The pages of a recorded working set, in the order of first use, and the map blocks and records
// that they need, in the order in which a reader comes to them.
struct UsedRecords {
  std::vector<format::PageRange> pages;
  std::vector<PieceRecord> records;  // each once
};

// Of the start of the set `recorded`, as far as a remote keeps one. `needed`: the version's records,
// ascending. Errc::corrupted. REQUIRES: gc keeps the version.
UsedRecords used_records(store::StoreDirectory& store, const format::Version& version,
                         std::vector<format::PageRange> recorded,
                         const std::vector<PieceRecord>& needed);

}  // namespace vellum::remote
