// remote/pieces/first_records.hpp: what the first page-in of a version reads, which its list of pieces
// may hold.
#pragma once

#include <vector>

#include "format/version.hpp"
#include "remote/objects/piece.hpp"
#include "store/catalog/store_core.hpp"

namespace vellum::remote {

// The roots of the version's runs; and, if they are here and take no more than `most_bytes`, the
// map blocks and records that its first pages need. Out of `needed`, its records, in the same order.
// Errc::corrupted. REQUIRES: gc keeps the version.
std::vector<PieceRecord> opening_records(store::StoreCore& store, const format::Version& version,
                                         const std::vector<PieceRecord>& needed,
                                         std::uint64_t most_bytes);

}  // namespace vellum::remote
