// store/catalog/snapshots/refs.hpp: snapshots by name. A snapshot is a ref, a file in `snapshots`.
#pragma once

#include <string>
#include <vector>

#include "format/version.hpp"
#include "store/packs/record/pack_store.hpp"

namespace vellum::store {

bool has_snapshot(const PackStore& store, const std::string& name);
std::vector<std::string> snapshot_names(const PackStore& store);  // sorted
// Errc::not_found names the snapshot, corrupted the file.
format::SnapshotRef read_snapshot(const PackStore& store, const std::string& name);

std::string ref_path(const PackStore& store, const std::string& snapshot);
inline constexpr const char* kRefSuffix = ".ref";

}  // namespace vellum::store
