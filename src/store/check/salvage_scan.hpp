// store/check/salvage_scan.hpp: finds the copies of versions that folds leave in the packs.
// Internal to salvage.
#pragma once

#include <vector>

#include "format/types.hpp"

namespace vellum::store {

class StoreCore;

// Every version record of every pack that checks out, by branch id and sequence; of equal ones the
// last. What is damaged is stepped over: a scan never fails.
std::vector<format::Version> scan_version_records(StoreCore& store);

}  // namespace vellum::store
