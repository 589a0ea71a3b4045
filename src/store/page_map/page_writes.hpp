// store/page_map/page_writes.hpp: the page writes of a commit, to be stored in journal or packs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes/codec.hpp"
#include "format/records/delta.hpp"
#include "format/wire/types.hpp"

namespace vellum::store {

// A page whose content is in a slot of a record.
struct PageRef {
  format::PageNumber page = 0;
  format::RecordRef record;
  std::uint32_t slot = 0;
};

// The hash of a page, for the index of the block that stores it.
struct NotedPage {
  std::uint32_t slot = 0;
  std::uint32_t hash = 0;
};

// Pages compressed together; slot i has pages[i].
struct PageBlock {
  std::vector<format::PageNumber> pages;  // ascending
  base::Codec codec = base::Compression::none;
  std::vector<std::byte> stored;
  std::vector<NotedPage> noted = {};  // for Dedup::note(), once the block is a record
  std::vector<std::byte> hash = {};   // SHA-256 of the pages; empty: not computed yet
};

// A delta larger than this (DeltaBatch::last_cost_bytes) is better stored as a page of a block: the
// page compresses to about the same size and ends the chain.
inline constexpr std::size_t kMaxDeltaCostBytes = format::kPageBytes / 2;

// A piece of a commit. A page appears in only one piece of a commit, and once in it.
struct PageWrites {
  format::DeltaBatch deltas;
  std::vector<PageBlock> blocks;
  std::vector<format::PageNumber> zeros;  // ascending: pages that are all zero
  std::vector<PageRef> found;             // ascending: pages that the store holds already
};

}  // namespace vellum::store
