// store/check/repair_find.hpp: a search for a corrupted store's whole versions; internal to repair.
#pragma once

#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// A version that reads completely.
struct Whole {
  std::string name;  // in the new store
  bool is_branch = false;
  bool exact = true;  // as in SavedVersion
  std::string origin;
  std::uint64_t line = 0;  // branch id: versions of one line share most pages
  ResolvedVersion resolved;
};

enum class Removed { left_out, saved_too };

struct Findings {
  std::vector<Whole> whole;
  std::vector<LostVersion> lost;
};

Findings find_whole_versions(StoreDirectory& store, Removed removed, const ProgressFn& progress);

}  // namespace vellum::store
