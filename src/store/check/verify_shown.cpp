#include "store/check/verify_shown.hpp"

#include <algorithm>
#include <cassert>

#include "store/gc/reach/version_walk.hpp"
#include "store/page_map/shown_stack.hpp"

namespace vellum::store {

using format::MapEntry;

namespace {

// Walks the versions. `change` receives entries, numbered across all runs; `visit`, versions.
void walk_shown(std::span<const format::Version* const> versions, const CheckedRuns& runs,
                ShownStack::ChangeFn change, const std::function<void(std::size_t)>& visit) {
  ShownStack stack(std::move(change));
  std::vector<ShownStack::Item> items;
  const auto push = [&](const format::RunRef& ref, std::size_t) {
    const CheckedRun& run = runs.at(ref.root);
    items.clear();
    std::uint32_t id = run.first_id;
    for (const MapEntry& e : run.entries) items.push_back({e.page, e.count, id++, e.kind});
    stack.push(items);
  };
  walk_versions(versions, {push, [&] { stack.pop(); }, visit});
}

// The entry with a given number.
struct NumberedEntry {
  CheckedRun* run;
  std::size_t index;
};
std::vector<NumberedEntry> number_entries(CheckedRuns& runs) {
  std::vector<NumberedEntry> out;
  for (auto& [root, run] : runs) {
    run.first_id = static_cast<std::uint32_t>(out.size());
    for (std::size_t i = 0; i < run.entries.size(); ++i) out.push_back({&run, i});
  }
  return out;
}

}  // namespace

void find_shown(std::span<const format::Version* const> versions, CheckedRuns& runs) {
  const auto numbered = number_entries(runs);
  for (auto& [root, run] : runs) run.shown.resize(run.entries.size());
  struct State {
    std::uint64_t pages = 0;  // that currently show
    std::size_t since = 0;    // versions visited before they started to
  };
  std::vector<State> states(numbered.size());
  std::size_t visited = 0;
  const auto change = [&](const ShownStack::Change& c) {
    assert(c.id < states.size());
    State& state = states[c.id];
    assert(c.shows || state.pages >= c.count);
    if (c.shows && state.pages == 0) state.since = visited;
    state.pages += c.shows ? c.count : -c.count;
    if (state.pages == 0 && visited > state.since) {
      numbered[c.id].run->shown[numbered[c.id].index] = true;
    }
  };
  walk_shown(versions, runs, change, [&](std::size_t) { ++visited; });
}

std::vector<std::vector<ShownProblem>> find_shown_problems(
    std::span<const format::Version* const> versions, CheckedRuns& runs,
    const std::function<ShownProblem(const ShownPart&)>& check) {
  const auto numbered = number_entries(runs);
  const auto entry = [&](std::uint32_t id) {
    return &numbered[id].run->entries[numbered[id].index];
  };
  std::map<std::uint32_t, ShownProblem> problems;  // of the pages that currently show, by entry
  const auto change = [&](const ShownStack::Change& c) {
    const MapEntry* const e = entry(c.id);
    const MapEntry* const below = c.below == ShownStack::kNothing ? nullptr : entry(c.below);
    ShownProblem found = check({*e, below, c.first, c.count});
    if (found.kind == ShownProblemKind::none) return;
    found.entry = e;
    const auto [at, fresh] = problems.try_emplace(c.id, found);
    assert(fresh || c.shows || at->second.pages >= found.pages);
    if (!fresh) at->second.pages += c.shows ? found.pages : -found.pages;
    if (at->second.pages == 0) problems.erase(at);
  };
  std::vector<std::vector<ShownProblem>> out(versions.size());
  walk_shown(versions, runs, change, [&](std::size_t version) {
    auto& list = out[version];
    for (const auto& [id, problem] : problems) list.push_back(problem);
    std::sort(list.begin(), list.end(),
              [](const ShownProblem& a, const ShownProblem& b) { return a.page < b.page; });
  });
  return out;
}

}  // namespace vellum::store
