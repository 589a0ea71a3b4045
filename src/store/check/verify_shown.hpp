// store/check/verify_shown.hpp: what versions show of the runs that verify has read.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "format/types.hpp"

namespace vellum::store {

// What a run of the page map leads to. Checked once, however many versions share it.
struct CheckedRun {
  std::vector<format::MapEntry> entries;
  std::vector<bool> shown;             // of the entries: some version shows something of it
  std::vector<format::RecordRef> own;  // root and blocks
  std::vector<std::uint64_t> packs;    // its own, then those that the root names, ascending
  std::set<std::string> damaged;       // objects
  format::PageNumber end = 0;
  std::uint32_t first_id = 0;  // of the entries, as verify_shown.cpp numbers them
};
using CheckedRuns = std::map<format::RecordRef, CheckedRun>;

// Sets `shown`. What only hidden entries name, gc may have given back. REQUIRES: the runs of all
// versions are in `runs`.
void find_shown(std::span<const format::Version* const> versions, CheckedRuns& runs);

// Pages of an entry that show; of a delta the entry that it stands on, or nullptr.
struct ShownPart {
  const format::MapEntry& entry;
  const format::MapEntry* below;
  format::PageNumber first;
  std::uint64_t count;
};
struct ShownProblem {
  enum class Kind { none, record, given_back, chain };
  Kind kind = Kind::none;
  std::uint64_t pages = 0;  // of the part that have it
  format::PageNumber page = 0;
  const char* reason = "";
  const format::MapEntry* entry = nullptr;  // set by find_shown_problems()
};

// For each version what `look` finds wrong with what it shows, by page. Each part is looked at when
// it begins and when it ceases to show, however many versions show it.
std::vector<std::vector<ShownProblem>> find_shown_problems(
    std::span<const format::Version* const> versions, CheckedRuns& runs,
    const std::function<ShownProblem(const ShownPart&)>& look);

}  // namespace vellum::store
