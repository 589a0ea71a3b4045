#include "remote/pieces/early_records.hpp"

#include <algorithm>
#include <cassert>
#include <set>

#include "remote/objects/piece_list.hpp"
#include "store/page_map/page_source.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::remote {
namespace {

constexpr format::PageNumber kFirstPages = 16;  // those that one page-in fills

// The map blocks, pages and deltas of a version's pages.
class PageRecords {
 public:
  PageRecords(store::StoreDirectory& store, const format::Version& version)
      : source_(store::PageSource::open(store, version, {}, store.path())) {
    for (const format::RunRef& ref : version.runs) runs_.push_back(store::load_run(store, ref));
  }

  // Calls visit(ref) for each record, in the order of the pages; some more than once.
  template <typename Visit>
  void each(const format::PageRange& pages, const Visit& visit) const {
    const format::PageNumber end = pages.first + pages.count;
    for (const auto& run : runs_) {
      const auto& blocks = run->root.blocks;
      for (std::size_t b = run->block_from(pages.first);
           b < blocks.size() && blocks[b].first_page < end; ++b) {
        visit(run->block_ref(b));
      }
    }
    for (format::PageNumber page = pages.first; page < end; ++page) {
      for (const format::MapEntry& entry : source_->chain(page)) {
        if (entry.kind != format::PageKind::zero) visit(entry.record);
      }
    }
  }

 private:
  std::shared_ptr<store::PageSource> source_;
  std::vector<std::shared_ptr<const store::LoadedRun>> runs_;
};

std::set<format::RecordRef> first_refs(store::StoreDirectory& store,
                                       const format::Version& version) {
  std::set<format::RecordRef> out;
  PageRecords(store, version).each({0, kFirstPages}, [&](const auto& ref) { out.insert(ref); });
  return out;
}

// The part within the version and the limits of a list.
std::vector<format::PageRange> cut(std::vector<format::PageRange> ranges, std::uint64_t pages) {
  std::uint64_t left = kMaxPagesInUse;
  ranges.resize(std::min(ranges.size(), kMaxRangesInUse));
  for (format::PageRange& range : ranges) {
    range.count = range.first < pages ? std::min({range.count, pages - range.first, left}) : 0;
    left -= range.count;
  }
  std::erase_if(ranges, [](const format::PageRange& range) { return range.count == 0; });
  return ranges;
}

}  // namespace

std::vector<PieceRecord> opening_records(store::StoreDirectory& store,
                                         const format::Version& version,
                                         const std::vector<PieceRecord>& needed,
                                         std::uint64_t most_bytes) {
  assert(std::ranges::is_sorted(needed, {}, &PieceRecord::ref));
  std::vector<PieceRecord> roots, all;
  std::uint64_t more_bytes = 0;
  const auto first = most_bytes == 0 ? std::set<format::RecordRef>() : first_refs(store, version);
  bool are_local = true;  // otherwise a push would wait for pieces
  for (const PieceRecord& record : needed) {
    const bool is_root = record.type == format::RecordType::run_root;
    if (is_root) roots.push_back(record);
    if (is_root || first.contains(record.ref)) all.push_back(record);
    if (is_root || !first.contains(record.ref)) continue;
    more_bytes += record.size_bytes;
    are_local = are_local && !store.packs().is_remote(record.ref.pack);
  }
  return are_local && more_bytes <= most_bytes ? all : roots;
}

UsedRecords used_records(store::StoreDirectory& store, const format::Version& version,
                         std::vector<format::PageRange> recorded,
                         const std::vector<PieceRecord>& needed) {
  assert(std::ranges::is_sorted(needed, {}, &PieceRecord::ref));
  UsedRecords out;
  out.pages = cut(std::move(recorded), version.region_bytes / format::kPageBytes);
  if (out.pages.empty()) return out;
  const PageRecords records(store, version);
  std::set<format::RecordRef> seen;
  for (const format::PageRange& range : out.pages) {
    records.each(range, [&](const format::RecordRef& ref) {
      if (!seen.insert(ref).second) return;
      const auto at = std::ranges::lower_bound(needed, ref, {}, &PieceRecord::ref);
      if (at != needed.end() && at->ref == ref) out.records.push_back(*at);
    });
  }
  return out;
}

}  // namespace vellum::remote
