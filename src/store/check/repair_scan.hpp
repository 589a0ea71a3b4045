// store/check/repair_scan.hpp: a scan for checkpoints' copies of versions in packs; internal to
// repair.
#pragma once

#include <vector>

#include "format/wire/types.hpp"

namespace vellum::store {

class StoreDirectory;

// Every valid version record in any pack, by branch id and sequence; of equal ones the last. The scan
// skips damage and never fails because of it.
std::vector<format::Version> scan_version_records(StoreDirectory& store);

}  // namespace vellum::store
