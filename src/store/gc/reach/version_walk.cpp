#include "store/gc/reach/version_walk.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

namespace vellum::store {

using format::RunRef;

namespace {

// Compares the runs, oldest run first.
bool runs_before(const format::Version& a, const format::Version& b) {
  return std::lexicographical_compare(
      a.runs.rbegin(), a.runs.rend(), b.runs.rbegin(), b.runs.rend(),
      [](const RunRef& x, const RunRef& y) { return x.root < y.root; });
}

std::size_t in_common(const std::vector<RunRef>& stack, const format::Version& version) {
  const auto same = [](const RunRef& x, const RunRef& y) { return x.root == y.root; };
  return static_cast<std::size_t>(
      std::mismatch(stack.begin(), stack.end(), version.runs.rbegin(), version.runs.rend(), same)
          .first -
      stack.begin());
}

}  // namespace

void walk_versions(std::span<const format::Version* const> versions, const VersionSteps& steps) {
  std::vector<std::size_t> order(versions.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (runs_before(*versions[a], *versions[b])) return true;
    return a < b && !runs_before(*versions[b], *versions[a]);
  });
  std::vector<RunRef> stack;  // oldest first
  for (const std::size_t index : order) {
    const format::Version& version = *versions[index];
    for (std::size_t common = in_common(stack, version); stack.size() > common; stack.pop_back()) {
      steps.pop();
    }
    while (stack.size() < version.runs.size()) {
      const RunRef& run = version.runs[version.runs.size() - 1 - stack.size()];
      steps.push(run, index);
      stack.push_back(run);
    }
    assert(stack.size() == version.runs.size());
    steps.visit(index);
  }
  for (; !stack.empty(); stack.pop_back()) steps.pop();
}

}  // namespace vellum::store
