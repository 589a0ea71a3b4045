#include "store/gc.hpp"

#include <set>

#include "store/census_file.hpp"
#include "store/lease.hpp"
#include "store/pack_mover.hpp"
#include "store/pack_use.hpp"
#include "store/util.hpp"
#include "store/working_set_file.hpp"

namespace vellum::store {

namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

class Collector {
 public:
  Collector(StoreCore& store, bool look_only, const ProgressFn& progress, int level)
      : store_(store), look_only_(look_only), progress_(progress), level_(level) {}

  GcReport run() {
    const Lease lock = look_only_ ? nullptr : keep_gc_for_us(store_);
    if (!look_only_) {
      store_.packs().places().require_owned();
      remove_leftovers(store_);
    }
    // Whoever only looks has to keep a gc from freeing what it looks at.
    Lease names = look_only_ ? hold_names(store_) : hold_names_alone(store_);
    const Roots roots = read_roots(store_);
    if (!look_only_) {
      names.reset();
      settle_removals();
      sweep_working_sets(store_);
    }
    report_.snapshots = roots.snapshots;
    report_.branches = roots.branches;
    report_.kept_open = roots.kept_open;
    tell(0, roots.packs.size());
    Findings found = look(roots);
    free(found.packs);
    // Now that there is space. With slots nothing was believed: all is news.
    if (!look_only_ && (level_ != 0 || found.census->has_news())) {
      write_census_file(store_, found.census->save());
    }
    if (level_ != 0) {
      report_.recompressed = recompress_packs(store_, roots, *found.census, found.needs, level_,
                                              look_only_, progress_);
    }
    if (!look_only_) report_.copies_removed = remove_stale_copies(store_);
    return report_;
  }

 private:
  struct Findings {
    std::unique_ptr<Census> census;
    Needs needs;
    std::vector<PackUse> packs;
  };

  // Slots are not in the file.
  Findings look(const Roots& roots) {
    if (level_ != 0) return look(roots, {});
    bool believed = false;
    try {
      return look(roots, read_census_file(store_), &believed);
    } catch (const Error& e) {
      if (e.code() != Errc::damaged || !believed) throw;
    }
    // It was the file, or what the maps say better.
    return look(roots, {});
  }

  Findings look(const Roots& roots, format::SavedCensus earlier, bool* believed = nullptr) {
    Findings found;
    found.census = std::make_unique<Census>(store_, level_ != 0);
    found.census->believe(std::move(earlier), roots.packs);
    mark_roots(store_, roots, *found.census);
    if (believed != nullptr) *believed = found.census->has_believed();
    found.needs = needs_of_packs(store_, roots, *found.census);
    found.packs = use_of_packs(store_, roots, *found.census, found.needs);
    return found;
  }

  void free(const std::vector<PackUse>& packs) {
    report_.packs = packs.size();
    std::uint64_t done = 0;
    for (const PackUse& use : packs) {
      report_.allocated_bytes += use.allocated_bytes;
      report_.needed_bytes += use.needed_bytes;
      report_.freeable_bytes += use.freeable_bytes;
      if (!look_only_) free(use);
      tell(++done, packs.size());
    }
    for (const std::string& directory : unlinked_in_) store_.fs().sync_directory(directory);
  }

  void tell(std::uint64_t done, std::uint64_t total) const {
    if (progress_) progress_({done, total, "packs"});
  }

  // A name that is gone must not come back after a power cut, without its data.
  void settle_removals() {
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
      if (use.removable) {
        remove(use);
      } else if (use.freeable_bytes != 0) {
        punch(use);
      }
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
    }
  }

  // A process may still have the pack open: its bytes go, not only its name.
  void remove(const PackUse& use) {
    const std::string path = store_.packs().path_of(use.pack);
    const auto file = store_.fs().open(path, base::OpenMode::read_write);
    store_.fs().unlink(path);
    unlinked_in_.insert(directory_of(path));
    ++report_.packs_removed;
    report_.freed_bytes += use.allocated_bytes;
    file->truncate(0);
  }

  void punch(const PackUse& use) {
    const std::string path = store_.packs().path_of(use.pack);
    if (without_holes_.contains(directory_of(path))) return;
    const auto file = store_.fs().open(path, base::OpenMode::read_write);
    const std::uint64_t before = file->allocated_bytes();
    try {
      for (const Extent& hole : use.holes) file->punch(hole.from, hole.to - hole.from);
    } catch (const Error& e) {
      if (e.code() != Errc::unsupported) throw;
      report_.holes_supported = false;
      without_holes_.insert(directory_of(path));  // another tier may be another file system
      return;
    }
    const std::uint64_t after = file->allocated_bytes();
    if (after < before) report_.freed_bytes += before - after;
    ++report_.packs_punched;
  }

  StoreCore& store_;
  bool look_only_;
  const ProgressFn& progress_;
  int level_;
  std::set<std::string> unlinked_in_, without_holes_;  // directories
  GcReport report_;
};

}  // namespace

GcReport collect_garbage(StoreCore& store, bool look_only, const ProgressFn& progress,
                         int recompress_level) {
  if (recompress_level < 0 || recompress_level > kMaxRecompressLevel) {
    fail(Errc::invalid_argument, "recompression at level {}: 1 to {}", recompress_level,
         kMaxRecompressLevel);
  }
  return Collector(store, look_only, progress, recompress_level).run();
}

}  // namespace vellum::store
