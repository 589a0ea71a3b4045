#include "store/gc/tier/tier_policy.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "base/fail.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/gc/reach/pack_heat.hpp"

namespace vellum::store {

using format::TierKind;

namespace {

class TierWork {
 public:
  TierWork(StoreDirectory& store, bool dry_run, const ProgressFn& progress)
      : store_(store), places_(store.packs().places()), dry_run_(dry_run), progress_(progress) {
    if (!dry_run) {
      gc_.emplace(store);
      places_.require_owned();
      remove_leftovers(store, *gc_);
    }
    // Holds the names while it reads versions; with the lock of gc, only until the roots are known.
    names_.emplace(store);
    const Roots roots = read_roots(store);
    if (!dry_run) names_.reset();
    heats_ = heat_of_packs(store, roots);
    for (const std::uint64_t pack : places_.list_in(places_.home())) at_home_.insert(pack);
    for (const PackHeat& heat : heats_) {
      if (at_home_.contains(heat.pack)) home_bytes_ += heat.bytes;
    }
  }

  void move(const TierMove& choice) {
    const std::vector<PackHeat> chosen =
        choice.to_archive ? coldest_at_home(choice) : hottest_in_archives(choice);
    if (chosen.empty()) return;
    const auto archives = places_.state()->present_paths(TierKind::archive);
    if (archives.empty()) fail(Errc::not_found, "{}: has no archive", store_.path());
    for (const PackHeat& heat : chosen) total_bytes_ += heat.bytes;
    for (const PackHeat& heat : chosen) {
      const bool done = choice.to_archive ? to_archive(heat, archives.front()) : to_home(heat);
      advance(heat);
      if (!done) {
        ++report_.packs_in_use;
        continue;
      }
      ++report_.packs_moved;
      report_.moved_bytes += heat.bytes;
      home_bytes_ += choice.to_archive ? 0 - heat.bytes : heat.bytes;
    }
  }

  void fill_caches() {
    const auto caches = places_.owned_caches();
    for (const auto& tier : places_.state()->tiers.directories) {
      if (std::find(caches.begin(), caches.end(), tier.path) != caches.end()) fill(tier);
    }
  }

  TierReport report() {
    report_.home_bytes = home_bytes_;
    return report_;
  }

 private:
  std::vector<PackHeat> coldest_at_home(const TierMove& choice) const {
    std::vector<PackHeat> out;
    std::uint64_t left = home_bytes_;
    for (auto heat = heats_.rbegin(); heat != heats_.rend(); ++heat) {
      if (choice.home_bytes.has_value() && left <= *choice.home_bytes) break;
      if (!heat->settled || !at_home_.contains(heat->pack)) continue;
      if (choice.keep_last != 0 && heat->named_rank <= choice.keep_last) continue;
      assert(heat->bytes <= left);
      left -= heat->bytes;
      out.push_back(*heat);
    }
    return out;
  }

  std::vector<PackHeat> hottest_in_archives(const TierMove& choice) const {
    std::vector<PackHeat> out;
    std::uint64_t taken = home_bytes_;
    for (const PackHeat& heat : heats_) {
      if (at_home_.contains(heat.pack)) continue;
      if (choice.home_bytes.has_value() && taken + heat.bytes > *choice.home_bytes) break;
      taken += heat.bytes;
      out.push_back(heat);
    }
    return out;
  }

  bool to_archive(const PackHeat& heat, const std::string& archive) {
    if (dry_run_) return !is_pinned(heat.pack);
    return move_to_archive(store_, *gc_, heat.pack, archive, copy_progress());
  }
  bool to_home(const PackHeat& heat) {
    if (dry_run_) return !is_pinned(heat.pack);
    return move_home(store_, *gc_, heat.pack, copy_progress());
  }
  bool is_pinned(std::uint64_t pack) const { return !places_.open(pack)->pinned_bytes().empty(); }

  void fill(const format::TierDirectory& cache) {
    std::vector<PackHeat> wanted;
    std::uint64_t taken = 0;
    for (const PackHeat& heat : heats_) {
      if (!heat.settled || heat.rank == PackHeat::kCold) continue;
      if (cache.limit_bytes != 0 && taken + heat.bytes > cache.limit_bytes) continue;
      taken += heat.bytes;
      wanted.push_back(heat);
    }
    try {
      drop_others(cache.path, wanted);
      std::erase_if(wanted,
                    [&](const PackHeat& h) { return is_copy_current(store_, h.pack, cache.path); });
      for (const PackHeat& heat : wanted) total_bytes_ += heat.bytes;
      for (const PackHeat& heat : wanted) {
        if (!dry_run_) copy_to_cache(store_, *gc_, heat.pack, cache.path, copy_progress());
        advance(heat);
        ++report_.copies_made;
        report_.copied_bytes += heat.bytes;
      }
    } catch (const Error&) {
      // The cache may vanish at any time, which is no error. Any other error is reported.
      places_.reload();
      const auto left = places_.owned_caches();
      if (std::find(left.begin(), left.end(), cache.path) == left.end()) return;
      throw;
    }
  }

  void drop_others(const std::string& cache, const std::vector<PackHeat>& wanted) {
    for (const std::uint64_t pack : places_.list_in(cache)) {
      const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                         [&](const PackHeat& h) { return h.pack == pack; });
      if (is_wanted && is_copy_current(store_, pack, cache)) continue;
      if (!dry_run_) store_.fs().unlink(cache + "/" + pack_file_name(pack));
      ++report_.copies_removed;
    }
  }

  CopyProgress copy_progress() const {
    if (!progress_) return nullptr;
    return [this](std::uint64_t bytes) {
      progress_({std::min(done_bytes_ + bytes, total_bytes_), total_bytes_, "bytes"});
    };
  }
  void advance(const PackHeat& heat) {
    done_bytes_ += heat.bytes;
    assert(done_bytes_ <= total_bytes_);
    if (progress_) progress_({done_bytes_, total_bytes_, "bytes"});
  }

  StoreDirectory& store_;
  const PackPlaces& places_;
  bool dry_run_;
  const ProgressFn& progress_;
  std::optional<GcExclusive> gc_;  // empty: a dry run
  std::optional<NamesShared> names_;
  std::vector<PackHeat> heats_;  // hottest first
  std::set<std::uint64_t> at_home_;
  std::uint64_t home_bytes_ = 0, done_bytes_ = 0, total_bytes_ = 0;
  TierReport report_;
};

}  // namespace

TierReport move_packs(StoreDirectory& store, const TierMove& choice, const ProgressFn& progress) {
  TierWork work(store, choice.dry_run, progress);
  work.move(choice);
  return work.report();
}

TierReport apply_tiers(StoreDirectory& store, bool dry_run, const ProgressFn& progress) {
  TierWork work(store, dry_run, progress);
  const auto state = store.packs().places().state();
  if (state->tiers.home_limit_bytes != 0) {
    work.move({true, state->tiers.home_limit_bytes, 0});
  }
  work.fill_caches();
  return work.report();
}

}  // namespace vellum::store
