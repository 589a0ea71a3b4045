// The space of a store: files, packs, and the shares of versions in records.
#include "store/check/check.hpp"

#include <algorithm>
#include <cassert>
#include <deque>
#include <functional>

#include "base/fail.hpp"
#include "store/catalog/lock/version_pin.hpp"
#include "store/catalog/names.hpp"
#include "store/catalog/working_set_file.hpp"
#include "store/gc/reach/census_file.hpp"
#include "store/gc/reach/pack_use.hpp"
#include "store/gc/reach/version_walk.hpp"
#include "store/gc/tier/tiers.hpp"
#include "store/page_map/overlay.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/shown_stack.hpp"
#include "store/stream/image_file.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageKind;

namespace {

// The bytes that each version needs, and those that only it needs. The walk visits the versions in
// an order in which a record shows during intervals. All versions of an interval need the record;
// the work is per interval, not per version. Invariant: `versions` of a record is the number of
// versions in its closed intervals, and its bytes are in `unique_bytes` of `sole_version` while
// that is 1.
class VersionShares {
 public:
  VersionShares(LiveSet& live_set, std::span<const std::uint64_t> record_bytes)
      : live_set_(live_set),
        bytes_(record_bytes),
        stack_([this](const ShownStack::Change& c) { count(c.id, c.count, c.shows); }) {}

  struct Share {
    std::uint64_t needed_bytes = 0, unique_bytes = 0, nonzero_pages = 0;
  };
  // By version, in the order of `versions`. `where` names the version of an error.
  std::vector<Share> of(std::span<const format::Version* const> versions,
                        const std::function<std::string(std::size_t)>& where) {
    out_.resize(versions.size());
    walk_versions(versions, {[&](const format::RunRef& run, std::size_t version) {
                               with_context(where(version), [&] { push(run); });
                             },
                             [this] { pop(); }, [this](std::size_t version) { visit(version); }});
    assert(runs_.empty() && needed_bytes_ == 0);
    return std::move(out_);
  }

 private:
  struct RecordShare {
    std::uint64_t shown = 0;  // pages, plus one for each run with it as a root or block
    std::uint32_t since = 0;  // versions visited before the current interval
    std::uint32_t versions = 0;
    std::size_t sole_version = 0;  // if `versions` is 1, the version that is charged
  };

  void push(const format::RunRef& ref) {
    const LiveSet::Run& run = live_set_.load(ref);
    if (uses_.size() < live_set_.size()) uses_.resize(live_set_.size());
    runs_.push_back(&run);
    for (const LiveSet::RecordId id : run.own) count(id, 1, true);
    items_.clear();
    for (const auto& e : run.entries) items_.push_back({e.page, e.count, e.record, e.kind});
    stack_.push(items_);
  }
  void pop() {
    assert(!runs_.empty());
    stack_.pop();
    for (const LiveSet::RecordId id : runs_.back()->own) count(id, 1, false);
    runs_.pop_back();
  }
  void visit(std::size_t version) {
    visited_.push_back(version);
    out_[version].needed_bytes = needed_bytes_;
    out_[version].nonzero_pages = stack_.nonzero_pages();
  }
  void count(LiveSet::RecordId id, std::uint64_t pages, bool shows) {
    if (id == ShownStack::kNothing) return;
    assert(id < uses_.size());
    RecordShare& use = uses_[id];
    const std::uint64_t bytes = id < bytes_.size() ? bytes_[id] : 0;
    const bool begins = shows && use.shown == 0;
    if (begins) {
      use.since = static_cast<std::uint32_t>(visited_.size());
      needed_bytes_ += bytes;
    }
    assert(shows || use.shown >= pages);
    use.shown += shows ? pages : -pages;
    if (begins || use.shown == 0) {
      for (const LiveSet::RecordId base : live_set_.bases_of(id)) count(base, 1, shows);
    }
    if (use.shown != 0) return;
    // The interval ends.
    assert(bytes <= needed_bytes_ && use.since <= visited_.size());
    needed_bytes_ -= bytes;
    const auto more = static_cast<std::uint32_t>(visited_.size()) - use.since;
    if (more == 0) return;
    if (use.versions == 1) out_[use.sole_version].unique_bytes -= bytes;
    use.sole_version = visited_[use.since];
    if (use.versions == 0 && more == 1) out_[use.sole_version].unique_bytes += bytes;
    use.versions += more;
  }

  LiveSet& live_set_;
  std::span<const std::uint64_t> bytes_;
  ShownStack stack_;
  std::vector<RecordShare> uses_;  // by record
  std::vector<const LiveSet::Run*> runs_;
  std::vector<ShownStack::Item> items_;
  std::vector<std::size_t> visited_;
  std::uint64_t needed_bytes_ = 0;
  std::vector<Share> out_;
};

class Stat {
 public:
  explicit Stat(StoreDirectory& store) : store_(store), live_set_(store) {}

  StoreStat run() {
    const NamesShared names(store_);
    const Roots roots = read_roots(store_);
    add_file(store_.superblock_path());
    add_file_if_there(census_path(store_));
    out_.stored_bytes += allocated_bytes_of_working_sets(store_);
    add_snapshots(roots);
    for (const auto& name : store_.branch_names()) add_branch(name);
    reach_roots(store_, roots, live_set_);
    add_packs(roots);
    add_caches();
    share_out();
    // A replication has a staging branch all the time: a name that no user has given.
    out_.branches -= std::erase_if(
        out_.versions, [](const VersionSpace& version) { return is_staging_name(version.name); });
    return std::move(out_);
  }

 private:
  std::uint64_t add_file(const std::string& path) {
    const auto file = store_.fs().open(path, base::OpenMode::read_only);
    out_.stored_bytes += file->allocated_bytes();
    return file->size_bytes();
  }

  // The file may be missing or of any kind.
  std::uint64_t add_file_if_there(const std::string& path) {
    try {
      return add_file(path);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::corrupted) throw;
      return 0;
    }
  }

  // Adds the files of the image that are in the store.
  void add_image(const std::string& branch) {
    for (const char* file : {kImageName, kImageStateName, kTouchedName, kImageTailName}) {
      add_file_if_there(store_.branches_directory() + "/" + branch + "/" + file);
    }
  }

  void add_snapshots(const Roots& roots) {
    std::vector<const Root*> snapshots;
    for (const Root& root : roots.versions) {
      if (!root.is_branch && !root.name.empty()) snapshots.push_back(&root);
    }
    std::sort(snapshots.begin(), snapshots.end(),
              [](const Root* a, const Root* b) { return a->name < b->name; });
    for (const Root* root : snapshots) {
      out_.ref_bytes += add_file_if_there(store_.snapshots_directory() + "/" + root->name + ".ref");
      add_version(root->name, false, root->version);
    }
  }

  VersionSpace& add_version(const std::string& name, bool is_branch,
                            const format::Version& version) {
    VersionSpace& stat = out_.versions.emplace_back();
    stat.name = name;
    stat.is_branch = is_branch;
    (is_branch ? out_.branches : out_.snapshots) += 1;
    stat.region_bytes = version.region_bytes;
    versions_.push_back(&version);
    return stat;
  }

  void add_branch(const std::string& name) {
    ResolvedVersion v;
    try {
      v = resolve_version(store_, name);
    } catch (const Error& e) {
      if (e.code() != Errc::not_found) throw;
      return;  // removed just now
    }
    out_.journal_bytes += add_file_if_there(store_.journal_path(name));
    add_image(name);
    VersionSpace& stat = add_version(name, true, heads_.emplace_back(std::move(v.version)));
    if (v.commits.empty()) return;
    const auto source = PageSource::open(store_, heads_.back(), v.commits, v.label);
    stat.region_bytes = source->region_bytes();
    for (const auto& p : source->overlaid_pages()) {
      const auto chain = source->chain(p.page);
      if (!chain.empty() && chain.front().kind != PageKind::zero) stat.nonzero_bytes -= kPageBytes;
      if (!p.zero) stat.nonzero_bytes += kPageBytes;
    }
  }

  void add_packs(const Roots& roots) {
    const Needs needs = needs_of_packs(store_, roots, live_set_);
    for (const PackUse& use : use_of_packs(store_, roots, live_set_, needs)) {
      ++out_.packs;
      out_.pack_bytes += use.file_bytes;
      out_.stored_bytes += use.allocated_bytes;
      out_.pack_needed_bytes += use.needed_bytes;
      out_.pack_freeable_bytes += use.freeable_bytes;
      if (use.at_home) continue;
      ++out_.archive_packs;
      out_.archive_bytes += use.file_bytes;
    }
  }

  void add_caches() {
    const auto tiers = store_.packs().places().state();
    for (const auto& cache : tiers->present_paths(format::TierKind::cache)) {
      try {
        const TierUse use = use_of_directory(store_, cache);
        out_.cache_copies += use.packs;
        out_.cache_bytes += use.bytes;
      } catch (const Error& e) {
        if (e.code() == Errc::out_of_memory) throw;  // else: the cache has vanished
      }
    }
  }

  void share_out() {
    const std::vector<std::uint64_t> bytes = record_bytes(store_, live_set_);
    const auto label = [this](std::size_t i) {
      const VersionSpace& v = out_.versions[i];
      return (v.is_branch ? "branch '" : "snapshot '") + v.name + "'";
    };
    const auto shares = VersionShares(live_set_, bytes).of(versions_, label);
    assert(shares.size() == out_.versions.size());
    for (std::size_t i = 0; i < shares.size(); ++i) {
      VersionSpace& v = out_.versions[i];
      assert(shares[i].unique_bytes <= shares[i].needed_bytes);
      v.unique_bytes = shares[i].unique_bytes;
      v.shared_bytes = shares[i].needed_bytes - shares[i].unique_bytes;
      v.nonzero_bytes += shares[i].nonzero_pages * kPageBytes;
      out_.full_copy_bytes += v.nonzero_bytes;
    }
  }

  StoreDirectory& store_;
  LiveSet live_set_;
  StoreStat out_;
  std::vector<const format::Version*> versions_;  // of out_.versions
  std::deque<format::Version> heads_;
};

}  // namespace

StoreStat stat_store(StoreDirectory& store) {
  return with_context(store.path(), [&] { return Stat(store).run(); });
}

}  // namespace vellum::store
