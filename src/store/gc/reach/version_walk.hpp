// store/gc/reach/version_walk.hpp: a walk through versions that reaches each run once.
//
// The runs beneath a run are the same in every version that has it. So versions ordered by their
// runs, oldest run first, are the leaves of a tree of runs. From one version to the next, the walk
// takes runs off down to the common ones and puts the others on.
#pragma once

#include <functional>
#include <span>

#include "format/version.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

struct VersionSteps {
  // A run goes on top of the stack, on the way to that version.
  std::function<void(const format::RunRef& run, std::size_t version)> push;
  std::function<void()> pop;
  std::function<void(std::size_t version)> visit;  // exactly its runs are on the stack
};

// Ends with an empty stack. An exception from a step ends the walk where it is.
void walk_versions(std::span<const format::Version* const> versions, const VersionSteps& steps);

}  // namespace vellum::store
