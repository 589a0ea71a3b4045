#include "store/stat.hpp"

#include "store/census_file.hpp"
#include "store/image_file.hpp"
#include "store/lease.hpp"
#include "store/overlay.hpp"
#include "store/pack_use.hpp"
#include "store/page_source.hpp"
#include "store/tiers.hpp"
#include "store/util.hpp"
#include "store/working_set_file.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::PageKind;

namespace {

// Which version is the only one to need a record.
constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::uint32_t kSeveral = UINT32_MAX - 1;

class Stat {
 public:
  explicit Stat(StoreCore& store) : store_(store), census_(store) {}

  StoreStat run() {
    const Lease names = hold_names(store_);
    const Roots roots = read_roots(store_);
    add_file(store_.superblock_path());
    add_census();
    out_.allocated_bytes += allocated_bytes_of_working_sets(store_);
    for (const auto& name : store_.snapshot_names()) {
      out_.ref_bytes += add_file(store_.snapshots_directory() + "/" + name + ".ref");
      add_version(name);
    }
    for (const auto& name : store_.branch_names()) {
      out_.journal_bytes += add_file(store_.journal_path(name));
      add_image(name);
      add_version(name);
    }
    mark_roots(store_, roots, census_);
    add_packs(roots);
    add_caches();
    share_out();
    return std::move(out_);
  }

 private:
  std::uint64_t add_file(const std::string& path) {
    const auto file = store_.fs().open(path, base::OpenMode::read_only);
    out_.allocated_bytes += file->allocated_bytes();
    return file->size_bytes();
  }

  // There or not, and whatever it is.
  void add_census() {
    try {
      add_file(census_path(store_));
    } catch (const Error& e) {
      if (e.code() != Errc::not_found && e.code() != Errc::damaged) throw;
    }
  }

  // What lies in the store of it.
  void add_image(const std::string& branch) {
    for (const char* file : {kImageName, kImageStateName, kTouchedName}) {
      const std::string path = store_.branches_directory() + "/" + branch + "/" + file;
      if (store_.fs().exists(path)) add_file(path);
    }
  }

  void add_version(const std::string& name) {
    const ResolvedVersion v = resolve_version(store_, name);
    VersionStat stat;
    stat.name = name;
    stat.is_branch = v.is_branch;
    stat.added_bytes = v.version.bytes_added;
    const auto version = static_cast<std::uint32_t>(out_.versions.size());
    std::uint64_t pages = with_context(v.label, [&] {
      return census_.visit(v.version, [&](Census::RecordId id) { note(id, version); });
    });
    stat.logical_bytes = v.version.region_bytes;
    if (!v.commits.empty()) {
      const auto source = PageSource::open(store_, v.version, v.commits, v.label);
      stat.logical_bytes = source->region_bytes();
      for (const auto& p : source->overlaid_pages()) {
        const auto chain = source->chain(p.page);
        if (!chain.empty() && chain.front().kind != PageKind::zero) --pages;
        if (!p.zero) ++pages;
      }
    }
    stat.nonzero_bytes = pages * kPageBytes;
    out_.full_copy_bytes += stat.nonzero_bytes;
    out_.versions.push_back(std::move(stat));
  }

  void note(Census::RecordId id, std::uint32_t version) {
    if (id >= only_.size()) {
      only_.resize(census_.size(), kNone);
      last_.resize(census_.size(), kNone);
    }
    if (last_[id] == version) return;
    last_[id] = version;
    only_[id] = only_[id] == kNone ? version : kSeveral;
    used_.emplace_back(id, version);
  }

  void add_packs(const Roots& roots) {
    const Needs needs = needs_of_packs(store_, roots, census_);
    for (const PackUse& use : use_of_packs(store_, roots, census_, needs)) {
      ++out_.packs;
      out_.pack_bytes += use.file_bytes;
      out_.allocated_bytes += use.allocated_bytes;
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
        if (e.code() == Errc::out_of_memory) throw;  // else: the cache has gone
      }
    }
  }

  void share_out() {
    const std::vector<std::uint64_t> bytes = record_bytes(store_, census_);
    for (const auto& [id, version] : used_) {
      VersionStat& v = out_.versions[version];
      (only_[id] == version ? v.unique_bytes : v.shared_bytes) += bytes[id];
    }
  }

  StoreCore& store_;
  Census census_;
  StoreStat out_;
  std::vector<std::uint32_t> only_, last_;  // by record
  std::vector<std::pair<Census::RecordId, std::uint32_t>> used_;
};

}  // namespace

StoreStat stat_store(StoreCore& store) {
  return with_context(store.path(), [&] { return Stat(store).run(); });
}

}  // namespace vellum::store
