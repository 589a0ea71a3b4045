// format/records/page_map.hpp: the page map on disk, sorted runs of entries.
//
// A run is cut into map blocks; its run root lists them. Entries of a run are sorted by page. Two
// entries overlap only when both have count 1 and the same page. They then form a chain, newest
// first. All but the last entry of a chain are deltas.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/wire/types.hpp"

namespace vellum::format {

// Raw payload of a map_block record. REQUIRES: 1..kMaxEntriesPerMapBlock entries in run order.
std::vector<std::byte> encode_map_block(std::span<const MapEntry> entries);

// Decodes into `out`, which needs room for kMaxEntriesPerMapBlock. Checks order, overlap, kinds,
// and that every page is below kMaxRegionBytes / kPageBytes. Does not allocate. Returns the number
// of entries, or -1 for corrupted bytes or for more entries than `out` has room for.
int decode_map_block(std::span<const std::byte> raw, std::span<MapEntry> out) noexcept;

// One map block of a run. All blocks of a run are in the pack of its root.
struct MapBlockRef {
  PageNumber first_page = 0;
  PageNumber last_page = 0;  // inclusive
  std::uint64_t offset_bytes = 0;
  std::uint32_t tag = 0;
  std::uint32_t entries = 0;
  bool operator==(const MapBlockRef&) const = default;
};
// Whether `entries` are the block that the root describes. Readers find a block by the pages that
// the root states for it, and must not use another. REQUIRES: decode_map_block() returned
// `entries`.
bool is_described(std::span<const MapEntry> entries, const MapBlockRef& block) noexcept;

// The root of a run: its blocks, and every pack that its entries point into (ascending, distinct).
// Opening a version opens these packs, and gc finds a version's packs without reading its blocks.
struct RunRoot {
  std::vector<MapBlockRef> blocks;
  std::vector<std::uint64_t> packs;
  bool operator==(const RunRoot&) const = default;
};
// REQUIRES: blocks and packs ascend. decode_run_root() refuses a root without blocks.
std::vector<std::byte> encode_run_root(const RunRoot& root);
// Checks that blocks are in page order and do not overlap (a chain never spans two blocks), and
// that packs ascend.
bool decode_run_root(std::span<const std::byte> raw, RunRoot& out);

}  // namespace vellum::format
