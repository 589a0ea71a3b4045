#include "store/reach/pack_heat.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/fail.hpp"
#include "store/page_map/run_reader.hpp"
#include "store/reach/census.hpp"

namespace vellum::store {

namespace {

class Thermometer {
 public:
  Thermometer(StoreCore& store, const Roots& roots) : store_(store), roots_(roots), census_(store) {
    for (const std::uint64_t pack : roots.packs) {
      PackHeat& heat = heats_[pack];
      heat.pack = pack;
      heat.settled = !roots.settled_bytes(pack).has_value();
    }
  }

  std::vector<PackHeat> run() {
    std::vector<const Root*> snapshots;
    for (const Root& root : roots_.versions) {
      if (root.may_be_stale || root.name.empty()) continue;
      if (root.is_branch) {
        note(root, 0);
      } else {
        snapshots.push_back(&root);
      }
    }
    std::sort(snapshots.begin(), snapshots.end(), [](const Root* a, const Root* b) {
      return std::tie(a->order, a->name) > std::tie(b->order, b->name);
    });
    std::uint32_t rank = 0;
    for (const Root* root : snapshots) note(*root, ++rank);
    return sorted();
  }

 private:
  void note(const Root& root, std::uint32_t rank) {
    with_context("'" + root.name + "' of " + store_.path(), [&] {
      census_.visit(root.version, [&](Census::RecordId id) {
        if (id >= seen_.size()) seen_.resize(census_.size());
        if (seen_[id]) return;  // a newer version needs it
        seen_[id] = true;
        const auto at = heats_.find(census_.record(id).pack);
        if (at == heats_.end()) return;
        PackHeat& heat = at->second;
        heat.rank = std::min(heat.rank, rank);
        if (heat.rank == rank) ++heat.records;
      });
      for (const auto& run : root.version.runs) {
        note_name(run.root.pack, rank);
        const auto loaded = load_run(store_, run);
        for (const std::uint64_t pack : loaded->root.packs) note_name(pack, rank);
      }
    });
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
        if (e.code() != Errc::damaged) throw;  // its writer has just given it up, or it is no pack
      }
    }
    std::sort(out.begin(), out.end(), [](const PackHeat& a, const PackHeat& b) {
      return std::tie(a.rank, b.records, b.pack) < std::tie(b.rank, a.records, a.pack);
    });
    return out;
  }

  StoreCore& store_;
  const Roots& roots_;
  Census census_;
  std::vector<bool> seen_;  // by record
  std::unordered_map<std::uint64_t, PackHeat> heats_;
};

}  // namespace

std::vector<PackHeat> heat_of_packs(StoreCore& store, const Roots& roots) {
  return Thermometer(store, roots).run();
}

}  // namespace vellum::store
