#include "store/stat.hpp"

#include <map>

#include "store/page_source.hpp"
#include "store/run_builder.hpp"
#include "store/util.hpp"

namespace vellum::store {

using format::kPageBytes;
using format::MapEntry;
using format::PageKind;
using format::PageNumber;

namespace {

// Pages whose newest entry is not zero.
std::uint64_t nonzero_pages(std::span<const MapEntry> merged) {
  std::uint64_t pages = 0;
  PageNumber end = 0;
  for (const MapEntry& e : merged) {
    const bool below = e.page < end;  // the rest of a chain
    end = e.page + e.count;
    if (!below && e.kind != PageKind::zero) pages += e.count;
  }
  return pages;
}

class Stat {
 public:
  explicit Stat(StoreCore& store) : store_(store) {}

  StoreStat run() {
    add_file(store_.path() + "/vellum.store");
    for (const std::uint64_t pack : store_.packs().list()) {
      out_.pack_bytes += add_file(store_.packs().path_of(pack));
      ++out_.packs;
    }
    for (const auto& name : store_.snapshot_names()) {
      out_.ref_bytes += add_file(store_.snapshots_directory() + "/" + name + ".ref");
      add_version(name);
    }
    for (const auto& name : store_.branch_names()) {
      out_.journal_bytes += add_file(store_.journal_path(name));
      add_version(name);
    }
    return std::move(out_);
  }

 private:
  std::uint64_t add_file(const std::string& path) {
    const auto file = store_.fs().open(path, base::OpenMode::read_only);
    out_.allocated_bytes += file->allocated_bytes();
    return file->size_bytes();
  }

  // Versions share most runs.
  const std::vector<MapEntry>& entries_of(const format::RunRef& run) {
    const auto [at, fresh] = entries_.try_emplace(run.root);
    if (fresh) at->second = read_entries(store_, *store_.load_run(run));
    return at->second;
  }

  void add_version(const std::string& name) {
    const ResolvedVersion v = resolve_version(store_, name);
    const auto source = PageSource::open(store_, v.version, v.commits, v.label);
    std::vector<std::vector<MapEntry>> runs;
    for (const auto& run : v.version.runs) runs.push_back(entries_of(run));
    std::uint64_t pages = nonzero_pages(merge_runs(std::move(runs), true));
    for (const auto& p : source->overlaid_pages()) {
      const auto chain = source->chain(p.page);
      if (!chain.empty() && chain.front().kind != PageKind::zero) --pages;
      if (!p.zero) ++pages;
    }
    VersionStat stat;
    stat.name = name;
    stat.is_branch = v.is_branch;
    stat.logical_bytes = source->region_bytes();
    stat.nonzero_bytes = pages * kPageBytes;
    stat.added_bytes = v.version.bytes_added;
    out_.full_copy_bytes += stat.nonzero_bytes;
    out_.versions.push_back(std::move(stat));
  }

  StoreCore& store_;
  StoreStat out_;
  std::map<format::RecordRef, std::vector<MapEntry>> entries_;
};

}  // namespace

StoreStat stat_store(StoreCore& store) {
  return with_context(store.path(), [&] { return Stat(store).run(); });
}

}  // namespace vellum::store
