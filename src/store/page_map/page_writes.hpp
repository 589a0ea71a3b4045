// store/page_map/page_writes.hpp: a commit's changes, on their way into the journal or the packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/records/delta.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// A page whose content lies in a slot of a record.
struct PageRef {
  format::PageNumber page = 0;
  format::RecordRef record;
  std::uint32_t slot = 0;
};

// The hash of a page, to be noted with the block that stores it.
struct NotedPage {
  std::uint32_t slot = 0;
  std::uint32_t hash = 0;
};

// Pages compressed together; slot i is pages[i].
struct PageBlock {
  std::vector<format::PageNumber> pages;  // ascending
  base::Codec codec = base::Codec::none;
  std::vector<std::byte> stored;
  std::vector<NotedPage> noted = {};  // for Dedup::note(), once the block has its place
  std::vector<std::byte> hash = {};   // SHA-256 of the pages; empty: not computed yet
};

// A delta that costs more than this (DeltaBatch::last_cost_bytes) is better stored as a page of a
// block: the page compresses to about as much and ends the chain.
inline constexpr std::size_t kMaxDeltaCostBytes = format::kPageBytes / 2;

// A piece of a commit's changes. A page appears in only one piece, and in one place.
struct PageWrites {
  format::DeltaBatch deltas;
  std::vector<PageBlock> blocks;
  std::vector<format::PageNumber> zeros;  // ascending: pages that are now all zero
  std::vector<PageRef> found;             // ascending: pages that the store holds already
};

}  // namespace vellum::store
