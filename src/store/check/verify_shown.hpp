// store/check/verify_shown.hpp: the entries that versions show; internal to verify.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::store {

// The contents of a run of the page map. Checked once, however many versions share it.
struct CheckedRun {
  std::vector<format::MapEntry> entries;
  std::vector<bool> shown;             // by entry: a version shows part of it
  std::vector<format::RecordRef> own;  // root and blocks
  std::vector<std::uint64_t> packs;    // its own, then those that the root names, ascending
  std::set<std::string> corrupted;     // objects
  format::PageNumber end = 0;
  std::uint32_t first_id = 0;  // of the entries; the numbers are those of verify_shown.cpp
};
using CheckedRuns = std::map<format::RecordRef, CheckedRun>;

// Sets `shown`. gc may have freed records that only hidden entries name. REQUIRES: the runs of all
// versions are in `runs`.
void find_shown(std::span<const format::Version* const> versions, CheckedRuns& runs);

// The pages of an entry that show. `below`: for a delta, the entry under it, or nullptr.
struct ShownPart {
  const format::MapEntry& entry;
  const format::MapEntry* below;
  format::PageNumber first;
  std::uint64_t count;
};
enum class ShownProblemKind { none, record, freed, chain };
struct ShownProblem {
  ShownProblemKind kind = ShownProblemKind::none;
  std::uint64_t pages = 0;  // number of pages of the part with the problem
  format::PageNumber page = 0;
  const char* reason = "";
  const format::MapEntry* entry = nullptr;  // set by find_shown_problems()
};

// For each version, the problems that `check` finds in the parts that it shows, by page. Calls
// `check` for each part when it starts and when it ceases to show, however many versions show it.
std::vector<std::vector<ShownProblem>> find_shown_problems(
    std::span<const format::Version* const> versions, CheckedRuns& runs,
    const std::function<ShownProblem(const ShownPart&)>& check);

}  // namespace vellum::store
