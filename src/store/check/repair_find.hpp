// store/check/repair_find.hpp: the search for a corrupted store's intact versions; internal to
// repair.
#pragma once

#include <string>
#include <vector>
#include <vellum/report.hpp>

#include "store/catalog/store_directory.hpp"

namespace vellum::store {

// An intact version: all of its data can be read.
struct Whole {
  std::string name;  // in the new store
  bool is_branch = false;
  bool exact = true;  // as in SavedVersion
  std::string origin;
  std::uint64_t line = 0;  // branch id: versions of one line share most pages
  ResolvedVersion resolved;
};

enum class Removed { left_out, saved_too };

struct RepairFindings {
  std::vector<Whole> whole;
  std::vector<LostVersion> lost;
};

RepairFindings find_whole_versions(StoreDirectory& store, Removed removed,
                                   const ProgressFn& progress);

}  // namespace vellum::store
