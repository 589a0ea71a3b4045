#include "store/page_map/run_reader.hpp"

#include <cassert>

#include "base/fail.hpp"
#include "store/packs/record/pack_store.hpp"
#include "store/packs/record/record_io.hpp"

namespace vellum::store {

using format::MapEntry;

namespace {

// Opens the packs that the root names.
LoadedRun read_run(PackStore& store, const format::RunRef& ref) {
  LoadedRun run{ref, read_run_root(store, ref)};
  for (const std::uint64_t pack : run.root.packs) store.packs().open(pack);
  return run;
}

}  // namespace

format::RunRoot read_run_root(PackStore& store, const format::RunRef& ref) {
  format::RunRoot root;
  const LoadedRecord record = load_cached_record(store, ref.root, format::RecordType::run_root);
  std::uint64_t entries = 0;
  const bool good =
      format::decode_run_root(record.raw, root) && root.blocks.size() == record.header.items;
  for (const auto& block : root.blocks) entries += block.entries;
  if (!good || entries != ref.entries) {
    fail(Errc::corrupted, "{}: the root of a run does not parse", record_place(store, ref.root));
  }
  return root;
}

std::shared_ptr<const LoadedRun> load_run(PackStore& store, const format::RunRef& ref) {
  return store.runs().get(ref, [&] { return read_run(store, ref); });
}

bool get_block(RecordCache& records, const LoadedRun& run, std::size_t block,
               RecordCache::View& view, ReadFailure& failure) noexcept {
  assert(block < run.root.blocks.size());
  const format::RecordRef ref = run.block_ref(block);
  if (!records.get({ref, format::RecordType::map_block}, view, failure)) return false;
  if (format::is_described(view.entries(), run.root.blocks[block])) return true;
  view.release();
  failure = {"the map block is not the one that its root describes", ref, 0, 0};
  return false;
}

std::vector<MapEntry> read_block(PackStore& store, const LoadedRun& run, std::size_t block) {
  RecordCache::View view;
  ReadFailure failure;
  if (!get_block(store.records(), run, block, view, failure)) {
    const bool os = failure.os_errno != 0 && failure.os_errno != ENODATA;
    fail(os ? Errc::io : Errc::corrupted, "{}: {}", record_place(store, run.block_ref(block)),
         failure.reason);
  }
  const auto found = view.entries();
  return {found.begin(), found.end()};
}

std::vector<MapEntry> read_entries(PackStore& store, const LoadedRun& run) {
  std::vector<MapEntry> out;
  for (std::size_t b = 0; b < run.root.blocks.size(); ++b) {
    const auto entries = read_block(store, run, b);
    out.insert(out.end(), entries.begin(), entries.end());
  }
  return out;
}

std::vector<std::vector<MapEntry>> read_all_entries(
    PackStore& store, std::span<const std::shared_ptr<const LoadedRun>> runs) {
  struct Block {
    std::size_t run, block;
  };
  std::vector<Block> blocks;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    for (std::size_t b = 0; b < runs[run]->root.blocks.size(); ++b) blocks.push_back({run, b});
  }
  std::vector<std::vector<MapEntry>> parts(blocks.size());
  const auto read = [&](std::size_t i, std::size_t) {
    parts[i] = read_block(store, *runs[blocks[i].run], blocks[i].block);
  };
  if (blocks.size() > 1) {
    store.pool().parallel_for(blocks.size(), read);
  } else if (!blocks.empty()) {
    read(0, 0);
  }
  std::vector<std::vector<MapEntry>> out(runs.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    auto& entries = out[blocks[i].run];
    entries.insert(entries.end(), parts[i].begin(), parts[i].end());
  }
  return out;
}

}  // namespace vellum::store
