#include "store/page_map/run_builder.hpp"

#include <algorithm>
#include <cassert>

#include "base/fail.hpp"
#include "format/records/page_map.hpp"
#include "store/packs/encode/payload.hpp"

namespace vellum::store {

using format::MapEntry;
using format::PageKind;
using format::PageNumber;

namespace {

// The end of the block that starts at `first`. Blocks are full, but never split a page's chain.
std::size_t block_end(std::span<const MapEntry> entries, std::size_t first) {
  std::size_t end = std::min(first + format::kMaxEntriesPerMapBlock, entries.size());
  if (end == entries.size()) return end;
  while (end > first && entries[end].page == entries[end - 1].page) --end;
  return end;
}

std::vector<std::span<const MapEntry>> split_into_blocks(std::span<const MapEntry> entries) {
  std::vector<std::span<const MapEntry>> blocks;
  for (std::size_t first = 0; first < entries.size();) {
    const std::size_t end = block_end(entries, first);
    if (end == first) fail(Errc::invalid_argument, "a page's chain is longer than a map block");
    blocks.push_back(entries.subspan(first, end - first));
    first = end;
  }
  return blocks;
}

std::vector<std::uint64_t> packs_of(std::span<const MapEntry> entries) {
  std::vector<std::uint64_t> packs;
  for (const MapEntry& e : entries) {
    if (e.kind == PageKind::zero) continue;
    if (packs.empty() || packs.back() != e.record.pack) packs.push_back(e.record.pack);
  }
  std::sort(packs.begin(), packs.end());
  packs.erase(std::unique(packs.begin(), packs.end()), packs.end());
  return packs;
}

}  // namespace

format::RunRef write_run(PackWriter& packs, EncodingThreads& threads,
                         std::span<const MapEntry> entries) {
  assert(!entries.empty());
  assert(std::ranges::is_sorted(entries, {}, &MapEntry::page));
  const auto blocks = split_into_blocks(entries);
  std::vector<EncodedPayload> payloads(blocks.size());
  threads.run(blocks.size(), [&](std::size_t i, base::Compressor& compressor) {
    payloads[i] = encode_payload(compressor, base::Compression::zstd, kMetadataZstdLevel,
                                 format::encode_map_block(blocks[i]));
  });
  format::RunRoot root;
  root.packs = packs_of(entries);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto block = blocks[i];
    const auto items = static_cast<std::uint32_t>(block.size());
    // All blocks of a run are in one pack: only the first may start a new one.
    const auto ref = packs.append({format::RecordType::map_block, payloads[i].codec,
                                   payloads[i].raw_bytes, payloads[i].stored, items},
                                  i == 0);
    root.blocks.push_back({block.front().page, block.back().page + block.back().count - 1,
                           ref.offset_bytes, ref.tag, items});
    assert(root.blocks.back().first_page <= root.blocks.back().last_page);
  }
  const auto payload = encode_payload(packs.compressor(), base::Compression::zstd,
                                      kMetadataZstdLevel, format::encode_run_root(root));
  const auto ref = packs.append({format::RecordType::run_root, payload.codec, payload.raw_bytes,
                                 payload.stored, static_cast<std::uint32_t>(root.blocks.size())},
                                false);
  return {ref, entries.size()};
}

std::size_t runs_to_merge(std::span<const format::RunRef> runs) noexcept {
  if (runs.empty()) return 0;
  std::size_t merged = 1;
  std::uint64_t size = runs[0].entries;
  // Runs of similar size become one, whose size may be similar to that of the next.
  for (;;) {
    std::size_t like = merged;
    std::uint64_t sum = size;
    while (like < runs.size() && runs[like].entries <= size * kTierFactor) {
      sum += runs[like].entries;
      ++like;
    }
    const std::size_t group = like - merged + 1;
    if (group < kRunsPerTier) break;
    merged = like;
    size = sum;
  }
  // A version may have kMaxRuns: beyond that, the newest, which are small, are merged.
  const std::size_t left = runs.size() - merged + 1;
  if (left > kMaxRuns) merged += left - kMaxRuns + kRunsPerTier;
  return std::min(merged, runs.size());
}

namespace {

// The position of a merge in one run.
struct Cursor {
  std::span<const MapEntry> entries;
  std::size_t at = 0;
  PageNumber from = 0;  // pages below are merged

  bool done() const noexcept { return at == entries.size(); }
  PageNumber page() const noexcept { return std::max(entries[at].page, from); }
  PageNumber end() const noexcept { return entries[at].page + entries[at].count; }
  void skip_to(PageNumber page) noexcept {
    from = std::max(from, page);
    while (!done() && end() <= from) ++at;
  }
};

MapEntry cut(const MapEntry& e, PageNumber page, std::uint64_t count) {
  assert(page >= e.page && count >= 1 && page + count <= e.page + e.count);
  MapEntry out = e;
  if (e.kind == PageKind::base) out.slot += static_cast<std::uint32_t>(page - e.page);
  out.page = page;
  out.count = static_cast<std::uint32_t>(count);
  return out;
}

class Output {
 public:
  explicit Output(bool drop_zeros) : drop_zeros_(drop_zeros) {}
  void add(const MapEntry& e, bool in_chain) {
    if (drop_zeros_ && e.kind == PageKind::zero) return;
    if (!in_chain && !last_in_chain_ && !out_.empty() && extends(out_.back(), e)) {
      out_.back().count += e.count;
      return;
    }
    out_.push_back(e);
    last_in_chain_ = in_chain;
  }
  std::vector<MapEntry> take() { return std::move(out_); }

 private:
  static bool extends(const MapEntry& last, const MapEntry& e) noexcept {
    if (last.kind != e.kind || last.page + last.count != e.page) return false;
    if (std::uint64_t{last.count} + e.count > UINT32_MAX) return false;
    if (e.kind == PageKind::zero) return true;
    return e.kind == PageKind::base && last.record == e.record && last.slot + last.count == e.slot;
  }
  bool drop_zeros_;
  bool last_in_chain_ = false;
  std::vector<MapEntry> out_;
};

// Emits the entries of the runs for `page` and for the following pages of the same entry. Returns the
// number of pages.
std::uint64_t merge_at(std::vector<Cursor>& cursors, PageNumber page, Output& out) {
  std::uint64_t count = UINT32_MAX;
  bool in_chain = false;
  for (Cursor& c : cursors) {
    if (c.done()) continue;
    if (c.page() != page) {
      count = std::min(count, c.page() - page);  // this newer run has entries from that page on
      continue;
    }
    // The run's own chain of this page; an extent is a chain of one.
    for (std::size_t i = c.at; i < c.entries.size() && c.entries[i].page <= page; ++i) {
      const MapEntry& e = c.entries[i];
      if (e.kind == PageKind::delta) {
        in_chain = true;
        count = 1;
        out.add(e, true);
        continue;
      }
      count = in_chain ? 1 : std::min(count, e.page + e.count - page);
      out.add(cut(e, page, count), in_chain);
      return count;
    }
  }
  return count;
}

}  // namespace

std::vector<MapEntry> merge_runs(const std::vector<std::vector<MapEntry>>& runs_newest_first,
                                 bool oldest) {
  std::vector<Cursor> cursors;
  cursors.reserve(runs_newest_first.size());
  for (const auto& run : runs_newest_first) cursors.push_back({run, 0, 0});
  // Without older runs, a page that has no entry is zero.
  Output out(oldest);
  for (;;) {
    PageNumber page = UINT64_MAX;
    for (const Cursor& c : cursors) {
      if (!c.done()) page = std::min(page, c.page());
    }
    if (page == UINT64_MAX) break;
    const std::uint64_t count = merge_at(cursors, page, out);
    assert(count >= 1);
    for (Cursor& c : cursors) c.skip_to(page + count);
  }
  return out.take();
}

}  // namespace vellum::store
