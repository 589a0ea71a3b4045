#include "remote/pieces/first_records.hpp"

#include <set>

#include "store/page_map/page_source.hpp"
#include "store/page_map/run_reader.hpp"

namespace vellum::remote {
namespace {

constexpr format::PageNumber kFirstPages = 16;  // those that one page-in brings

// Map blocks, pages and deltas.
std::set<format::RecordRef> first_refs(store::StoreCore& store, const format::Version& version) {
  std::set<format::RecordRef> out;
  for (const format::RunRef& ref : version.runs) {
    const auto run = store::load_run(store, ref);
    const std::size_t block = run->block_from(0);
    if (block < run->root.blocks.size() && run->root.blocks[block].first_page < kFirstPages) {
      out.insert(run->block_ref(block));
    }
  }
  const auto source = store::PageSource::open(store, version, {}, store.path());
  for (format::PageNumber page = 0; page < kFirstPages; ++page) {
    for (const format::MapEntry& entry : source->chain(page)) {
      if (entry.kind != format::PageKind::zero) out.insert(entry.record);
    }
  }
  return out;
}

}  // namespace

std::vector<PieceRecord> opening_records(store::StoreCore& store, const format::Version& version,
                                         const std::vector<PieceRecord>& needed,
                                         std::uint64_t most_bytes) {
  std::vector<PieceRecord> roots, all;
  std::uint64_t more_bytes = 0;
  const auto first = most_bytes == 0 ? std::set<format::RecordRef>() : first_refs(store, version);
  bool are_here = true;  // else a push would wait for pieces
  for (const PieceRecord& record : needed) {
    const bool is_root = record.type == format::RecordType::run_root;
    if (is_root) roots.push_back(record);
    if (is_root || first.contains(record.ref)) all.push_back(record);
    if (is_root || !first.contains(record.ref)) continue;
    more_bytes += record.size_bytes;
    are_here = are_here && !store.packs().is_away(record.ref.pack);
  }
  return are_here && more_bytes <= most_bytes ? all : roots;
}

}  // namespace vellum::remote
