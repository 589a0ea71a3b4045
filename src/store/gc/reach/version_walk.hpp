// store/gc/reach/version_walk.hpp: a walk through versions that visits each run once.
//
// The runs older than a given run are the same in every version that has it. Versions, ordered by
// their runs with the oldest first, are therefore the leaves of a tree of runs. From one version to
// the next, the walk pops the runs that they do not share and pushes the others.
#pragma once

#include <functional>
#include <span>

#include "format/version.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

struct VersionSteps {
  // Pushes a run of that version, which is visited next.
  std::function<void(const format::RunRef& run, std::size_t version)> push;
  std::function<void()> pop;
  std::function<void(std::size_t version)> visit;  // exactly its runs are on the stack
};

// Ends with an empty stack. An exception from a step ends the walk at once.
void walk_versions(std::span<const format::Version* const> versions, const VersionSteps& steps);

}  // namespace vellum::store
