#include "store/gc/gc.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "base/fail.hpp"
#include "base/files/new_file.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/space_note.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/gc/pack_mover.hpp"
#include "store/gc/reach/census_file.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/packs/former_file.hpp"

namespace vellum::store {

namespace {

constexpr std::uint64_t kPunchStepBytes = 1u << 20;
constexpr std::uint64_t kPunchStepHoles = 64;

class Collector {
 public:
  Collector(StoreDirectory& store, bool dry_run, const ProgressFn& progress, int level,
            const GcPace& pace)
      : store_(store), dry_run_(dry_run), progress_(progress), level_(level), pace_(pace) {}

  GcReport run() {
    std::optional<GcExclusive> gc;
    if (!dry_run_) {
      gc.emplace(store_, pace_.patience);
      store_.packs().places().require_owned();
      remove_leftovers(store_, *gc);
      remove_orphans(store_, *gc);
    }
    // A dry run must keep another gc from freeing the records that it reads.
    std::optional<NamesShared> read_only;
    std::optional<NamesExclusive> names;
    if (dry_run_) {
      read_only.emplace(store_);
    } else {
      if (store_.packs().reaches_remote()) store_.packs().refresh();  // packs may be fetched by now
      names.emplace(store_, pace_.patience, UnpinnedVersions::must_be_closed);
    }
    const Roots roots = read_roots(store_);
    if (!dry_run_) {
      report_.freed_bytes += remove_former_files(store_.fs(), store_.packs().places());
      names.reset();
      settle_removals();
      sweep_working_sets(store_);
    }
    report_.snapshots = roots.snapshots;
    report_.branches = roots.branches;
    report_.open_versions = roots.kept_open;
    report_progress(0, roots.packs.size());
    Findings found = find_needs(roots);
    free(found.packs);
    // Written after space was freed. A live set with slots ignores the census, hence all of it may
    // differ from the census.
    if (!dry_run_ && (level_ != 0 || found.live_set->has_changed())) {
      write_census_file(store_, found.live_set->save(), pace_.flush_census);
    }
    if (level_ != 0) {
      report_.recompressed = recompress_packs(store_, roots, *found.live_set, found.needs,
                                              {level_, gc ? &*gc : nullptr, progress_});
    }
    if (!dry_run_) {
      // Rewritten packs hold next to nothing that is not needed.
      if (level_ != 0) at_home_.left_bytes = at_home_.needed_bytes = home_pack_bytes(store_);
      write_space_note(store_, at_home_);
      report_.copies_removed = remove_stale_copies(store_, *gc);
    }
    return report_;
  }

 private:
  struct Findings {
    std::unique_ptr<LiveSet> live_set;
    Needs needs;
    std::vector<PackUse> packs;
  };

  // Uses the census unless slots are needed, which it does not have.
  Findings find_needs(const Roots& roots) {
    if (level_ != 0) return find_needs(roots, {});
    bool loaded = false;
    try {
      return find_needs(roots, read_census_file(store_), &loaded);
    } catch (const Error& e) {
      if (e.code() != Errc::corrupted || !loaded) throw;
    }
    // The census was wrong, or the maps are damaged and reading them gives a better message.
    return find_needs(roots, {});
  }

  Findings find_needs(const Roots& roots, format::GcCensus earlier, bool* loaded = nullptr) {
    Findings found;
    found.live_set = std::make_unique<LiveSet>(store_, level_ != 0);
    found.live_set->load_earlier(std::move(earlier), store_.packs().list_with_remote());
    reach_roots(store_, roots, *found.live_set, pace_.between_steps);
    if (loaded != nullptr) *loaded = found.live_set->has_earlier();
    found.needs = needs_of_packs(store_, roots, *found.live_set);
    found.packs = use_of_packs(store_, roots, *found.live_set, found.needs, pace_.between_steps);
    return found;
  }

  // Unlinks first: punching may itself need a block, which a full disk does not have.
  void free(const std::vector<PackUse>& packs) {
    report_.packs = packs.size();
    for (const PackUse& use : packs) {
      report_.pack_bytes += use.allocated_bytes;
      report_.needed_bytes += use.needed_bytes;
      report_.freeable_bytes += use.freeable_bytes;
      if (use.at_home) at_home_.left_bytes += use.allocated_bytes;
      if (use.at_home) at_home_.needed_bytes += use.needed_bytes;
    }
    std::uint64_t done = 0;
    for (const bool removable : {true, false}) {
      for (const PackUse& use : packs) {
        if (use.removable != removable) continue;
        if (!dry_run_) free(use);
        report_progress(++done, packs.size());
      }
    }
    assert(done == packs.size());
    for (const std::string& directory : unlinked_in_) store_.fs().sync_directory(directory);
  }

  void report_progress(std::uint64_t done, std::uint64_t total) const {
    assert(done <= total);
    if (progress_) progress_({done, total, "packs"});
  }

  // After a power cut, a removed name must not reappear without its data.
  void settle_removals() {
    before_change();
    store_.fs().sync_directory(store_.snapshots_directory());
    for (const auto& entry : store_.fs().list(store_.branches_directory())) {
      if (!entry.is_directory || store_.fs().exists(store_.journal_path(entry.name))) continue;
      try {
        store_.fs().sync_directory(store_.branches_directory() + "/" + entry.name);
      } catch (const Error& e) {
        if (e.code() != Errc::not_found) throw;
      }
    }
    store_.fs().sync_directory(store_.branches_directory());
  }

  void free(const PackUse& use) {
    try {
      const std::uint64_t before = report_.freed_bytes;
      if (use.removable) {
        remove(use);
      } else if (use.freeable_bytes != 0) {
        punch(use);
      }
      const std::uint64_t freed = report_.freed_bytes - before;
      if (use.at_home) at_home_.left_bytes -= std::min(freed, at_home_.left_bytes);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
    }
  }

  // Truncates the file after unlinking it: a process may still have the pack open.
  void remove(const PackUse& use) {
    assert(use.removable && use.holes.empty());
    const std::string path = store_.packs().path_of(use.pack);
    const auto file = store_.fs().open(path, base::OpenMode::read_write);
    before_change();
    store_.fs().unlink(path);
    unlinked_in_.insert(base::parent_of(path));
    ++report_.packs_removed;
    report_.freed_bytes += use.allocated_bytes;
    file->truncate(0);
  }

  void punch(const PackUse& use) {
    const std::string path = store_.packs().path_of(use.pack);
    if (without_holes_.contains(base::parent_of(path))) return;
    const auto file = store_.fs().open(path, base::OpenMode::read_write);
    try {
      step_bytes_ = kPunchStepBytes;  // the first hole starts a step
      for (const Extent& hole : use.holes) punch(*file, hole);
    } catch (const Error& e) {
      if (e.code() != Errc::unsupported) throw;
      report_.holes_supported = false;
      without_holes_.insert(base::parent_of(path));  // another tier may be on another file system
      return;
    }
    ++report_.packs_punched;
  }

  // Works in steps: a writer that appends to the file waits while the kernel punches the hole.
  void punch(base::File& file, const Extent& hole) {
    assert(hole.from < hole.to && hole.from % kHoleBytes == 0 && hole.to % kHoleBytes == 0);
    for (std::uint64_t at = hole.from;;) {
      at = std::max(at, file.next_data(at) / kHoleBytes * kHoleBytes);
      if (at >= hole.to) return;
      if (step_bytes_ >= kPunchStepBytes || step_holes_ >= kPunchStepHoles) before_change();
      assert(step_bytes_ < kPunchStepBytes);
      const std::uint64_t end = std::min(hole.to, at + kPunchStepBytes - step_bytes_);
      // Measured around each hole, so that a writer's appends do not hide the freed bytes.
      const std::uint64_t before = file.allocated_bytes();
      file.punch(at, end - at);
      const std::uint64_t after = file.allocated_bytes();
      if (after < before) report_.freed_bytes += before - after;
      step_bytes_ += end - at;
      ++step_holes_;
      at = end;
    }
  }

  void before_change() {
    if (pace_.before_change) pace_.before_change(report_.freed_bytes);
    step_bytes_ = step_holes_ = 0;
  }

  StoreDirectory& store_;
  bool dry_run_;
  const ProgressFn& progress_;
  int level_;
  const GcPace& pace_;
  format::SpaceNote at_home_;
  std::uint64_t step_bytes_ = 0, step_holes_ = 0;      // of the current step
  std::set<std::string> unlinked_in_, without_holes_;  // directories
  GcReport report_;
};

}  // namespace

GcReport collect_garbage(StoreDirectory& store, bool dry_run, const ProgressFn& progress,
                         int recompress_level, const GcPace& pace) {
  if (recompress_level < 0 || recompress_level > kMaxRecompressLevel) {
    fail(Errc::invalid_argument, "recompression level {}: give 1 to {}", recompress_level,
         kMaxRecompressLevel);
  }
  return Collector(store, dry_run, progress, recompress_level, pace).run();
}

}  // namespace vellum::store
