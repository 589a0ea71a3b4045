// store/check/repair_report.hpp: a report on the versions that repair has saved and lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vellum::store {

struct SavedVersion {
  std::string name;  // in the new store
  bool is_branch = false;
  std::uint64_t sequence = 0;
  std::uint64_t region_bytes = 0;
  std::string origin;  // "snapshot 'a'", "branch 'main'", or the source of a recovery
  bool exact = true;   // false: an older state than the one asked for, or a version without a name
                       // of its own
};

struct LostVersion {
  std::string name;    // "snapshot 'a'", "branch 'main'"
  std::string reason;  // names file and offset
};

struct RepairReport {
  std::vector<SavedVersion> saved;
  std::vector<LostVersion> lost;
  std::string destination;  // empty for a dry run
  std::uint64_t pages_written = 0;
};

enum class Removed { left_out, saved_too };

}  // namespace vellum::store
