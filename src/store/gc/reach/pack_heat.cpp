#include "store/gc/reach/pack_heat.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <unordered_map>

#include "base/fail.hpp"
#include "store/gc/reach/live_set.hpp"
#include "store/gc/reach/version_walk.hpp"
#include "store/page_map/shown_stack.hpp"

namespace vellum::store {

namespace {

// The least rank of the versions visited since a given count of visits.
class RanksSince {
 public:
  std::size_t visited() const noexcept { return visited_; }
  void visit(std::uint32_t rank) {
    while (!least_.empty() && least_.back().rank >= rank) least_.pop_back();
    least_.push_back({visited_++, rank});
  }
  // kCold: no version was visited since.
  std::uint32_t since(std::size_t visited) const {
    assert(visited <= visited_);
    const auto at =
        std::lower_bound(least_.begin(), least_.end(), visited,
                         [](const Visit& visit, std::size_t from) { return visit.index < from; });
    return at == least_.end() ? PackHeat::kCold : at->rank;
  }

 private:
  struct Visit {
    std::size_t index;
    std::uint32_t rank;
  };
  std::vector<Visit> least_;  // ascending by rank and index
  std::size_t visited_ = 0;
};

// A record is needed by all versions between the one where it starts to show and the one where it
// ceases to. The work is therefore not proportional to records times versions.
class Thermometer {
 public:
  Thermometer(StoreDirectory& store, const Roots& roots)
      : store_(store),
        roots_(roots),
        live_set_(store),
        stack_([this](const ShownStack::Change& c) { count(c.id, c.count, c.shows); }) {
    for (const std::uint64_t pack : roots.packs) {
      PackHeat& heat = heats_[pack];
      heat.pack = pack;
      heat.settled = !roots.settled_bytes(pack).has_value();
    }
  }

  std::vector<PackHeat> run() {
    rank_versions();
    std::vector<const format::Version*> versions;
    for (const Root* root : ranked_) versions.push_back(&root->version);
    walk_versions(
        versions,
        {[this](const format::RunRef& run, std::size_t version) {
           with_context("'" + ranked_[version]->name + "' of " + store_.path(), [&] { push(run); });
         },
         [this] { pop(); }, [this](std::size_t version) { ranks_.visit(ranks_of_[version]); }});
    for (LiveSet::RecordId id = 0; id < uses_.size(); ++id) warm(id);
    return sorted();
  }
  std::uint64_t steps() const noexcept { return steps_; }

 private:
  struct RecordHeat {
    std::uint64_t shown = 0;  // pages, plus one for each run with it as a root or block
    std::size_t since = 0;    // versions visited before it started to show
    std::uint32_t rank = PackHeat::kCold;
  };
  struct PushedRun {
    const LiveSet::Run* run;
    std::size_t since;
  };

  // Branches' heads, then snapshots, the newest first.
  void rank_versions() {
    for (const Root& root : roots_.versions) {
      if (!root.may_be_stale && !root.name.empty()) ranked_.push_back(&root);
    }
    std::sort(ranked_.begin(), ranked_.end(), [](const Root* a, const Root* b) {
      if (a->is_branch != b->is_branch) return a->is_branch;
      return std::tie(a->order, a->name) > std::tie(b->order, b->name);
    });
    const auto heads = static_cast<std::size_t>(std::count_if(
        ranked_.begin(), ranked_.end(), [](const Root* root) { return root->is_branch; }));
    for (std::size_t i = 0; i < ranked_.size(); ++i) {
      ranks_of_.push_back(i < heads ? 0 : static_cast<std::uint32_t>(i - heads + 1));
    }
  }

  void push(const format::RunRef& ref) {
    const LiveSet::Run& run = live_set_.load(ref);
    if (uses_.size() < live_set_.size()) uses_.resize(live_set_.size());
    runs_.push_back({&run, ranks_.visited()});
    for (const LiveSet::RecordId id : run.own) count(id, 1, true);
    items_.clear();
    for (const auto& e : run.entries) items_.push_back({e.page, e.count, e.record, e.kind});
    steps_ += items_.size();
    stack_.push(items_);
  }

  void pop() {
    assert(!runs_.empty());
    stack_.pop();
    const auto [run, since] = runs_.back();
    for (const LiveSet::RecordId id : run->own) count(id, 1, false);
    for (const std::uint64_t pack : run->packs) note_name(pack, ranks_.since(since));
    runs_.pop_back();
  }

  void count(LiveSet::RecordId id, std::uint64_t pages, bool shows) {
    ++steps_;
    if (id == ShownStack::kNothing) return;
    assert(id < uses_.size());
    RecordHeat& use = uses_[id];
    assert(shows || use.shown >= pages);
    if (shows && use.shown == 0) use.since = ranks_.visited();
    use.shown += shows ? pages : -pages;
    if (use.shown == 0) use.rank = std::min(use.rank, ranks_.since(use.since));
  }

  // A pack is as hot as the hottest of its records.
  void warm(LiveSet::RecordId id) {
    const std::uint32_t rank = uses_[id].rank;
    const auto at = heats_.find(live_set_.record(id).pack);
    if (rank == PackHeat::kCold || at == heats_.end()) return;
    PackHeat& heat = at->second;
    if (rank < heat.rank) heat.records = 0;
    heat.rank = std::min(heat.rank, rank);
    if (rank == heat.rank) ++heat.records;
  }

  void note_name(std::uint64_t pack, std::uint32_t rank) {
    const auto at = heats_.find(pack);
    if (at != heats_.end()) at->second.named_rank = std::min(at->second.named_rank, rank);
  }

  std::vector<PackHeat> sorted() {
    std::vector<PackHeat> out;
    for (auto& [pack, heat] : heats_) {
      try {
        heat.bytes = store_.packs().places().open(pack)->allocated_bytes();
        out.push_back(heat);
      } catch (const Error& e) {
        if (e.code() != Errc::corrupted) throw;  // its writer has just removed it, or it is no pack
      }
    }
    std::sort(out.begin(), out.end(), [](const PackHeat& a, const PackHeat& b) {
      return std::tie(a.rank, b.records, b.pack) < std::tie(b.rank, a.records, a.pack);
    });
    return out;
  }

  StoreDirectory& store_;
  const Roots& roots_;
  LiveSet live_set_;
  ShownStack stack_;
  RanksSince ranks_;
  std::vector<const Root*> ranked_;
  std::vector<std::uint32_t> ranks_of_;  // of `ranked_`
  std::vector<RecordHeat> uses_;         // by record
  std::vector<PushedRun> runs_;
  std::vector<ShownStack::Item> items_;
  std::uint64_t steps_ = 0;
  std::unordered_map<std::uint64_t, PackHeat> heats_;
};

}  // namespace

std::vector<PackHeat> heat_of_packs(StoreDirectory& store, const Roots& roots,
                                    std::uint64_t* steps) {
  Thermometer thermometer(store, roots);
  auto heats = thermometer.run();
  if (steps != nullptr) *steps = thermometer.steps();
  return heats;
}

}  // namespace vellum::store
