// store/reach/version_walk.hpp: a way through versions that comes to each run once.
//
// The runs beneath a run are the same in every version that has it. So versions that are ordered by
// their runs, the oldest first, are the leaves of a tree of runs: from one to the next, runs are
// taken off down to what both have in common, and the others put on.
#pragma once

#include <functional>
#include <span>

#include "format/types.hpp"
#include "format/version.hpp"

namespace vellum::store {

struct VersionSteps {
  // A run goes on top of those that are there, on the way to that version.
  std::function<void(const format::RunRef& run, std::size_t version)> push;
  std::function<void()> pop;
  std::function<void(std::size_t version)> visit;  // its runs are there, and no others
};

// Ends with nothing pushed. What a step throws ends it where it is.
void walk_versions(std::span<const format::Version* const> versions, const VersionSteps& steps);

}  // namespace vellum::store
